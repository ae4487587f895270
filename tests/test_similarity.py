"""CKA, SVCCA and RSA against kernel matrices, double loops and plain linear algebra."""

import numpy as np
import pytest
import torch

from thaw.probes.similarity_indices import Products, cka, rsa, svcca


def vectors(count: int, width: int, seed: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(seed).normal(size=(count, width)))


def products(x, y, batch: int) -> tuple[Products, Products, Products]:
    found = Products(), Products(), Products()
    for start in range(0, len(x), batch):
        a, b = x[start : start + batch], y[start : start + batch]
        for sums, pair in zip(found, ((a, b), (a, a), (b, b)), strict=True):
            sums.add(*pair)
    return found


def unbiased(x, y) -> float:
    """Song et al. 2012, equation 5, with the N x N matrices themselves."""
    k, l = (side @ side.T for side in (x, y))  # noqa: E741
    k, l = k - torch.diag(k.diag()), l - torch.diag(l.diag())  # noqa: E741
    n, one = len(x), torch.ones(len(x), dtype=x.dtype)
    middle = (one @ k @ one) * (one @ l @ one) / ((n - 1) * (n - 2))
    return ((torch.trace(k @ l) + middle - 2 / (n - 2) * (one @ k @ l @ one)) / (n * (n - 3))).item()


@pytest.mark.parametrize("batch", [1, 7, 50])
def test_sums_over_batches_are_those_of_the_whole_kernel_matrices(batch):
    x, y = vectors(50, 6, 1), vectors(50, 9, 2)
    y[:, 0] += 2 * x[:, 1]
    both, first, second = products(x + 30.0, y, batch)
    assert both.dependence() == pytest.approx(unbiased(x, y), rel=1e-6), "the origin does not matter"
    due = unbiased(x, y) / (unbiased(x, x) * unbiased(y, y)) ** 0.5
    assert cka(both, first, second) == pytest.approx(due, rel=1e-6)


def test_cka_is_blind_to_rotation_and_scale_and_zero_on_average_for_unrelated_vectors():
    x = vectors(80, 10, 1)
    rotation = torch.linalg.qr(vectors(10, 10, 2))[0]
    assert cka(*products(x, 3.0 * x @ rotation + 1.0, 16)) == pytest.approx(1.0, abs=1e-9)
    found = [cka(*products(vectors(40, 60, 2 * n), vectors(40, 60, 2 * n + 1), 40)) for n in range(60)]
    assert abs(np.mean(found)) < 3 * np.std(found) / 60**0.5 + 1e-3
    assert cka(*products(x, torch.zeros(80, 3), 16)) is None


def test_svcca_is_the_mean_canonical_correlation_of_the_strongest_directions():
    x = vectors(400, 5, 1) * torch.tensor([3.0, 2.0, 1.0, 1.0, 1e-3])
    y = torch.cat([x[:, :2] + 0.5 * vectors(400, 2, 3), vectors(400, 2, 4)], 1)

    def strongest(side):
        centred = (side - side.mean(0)).numpy()
        left, values, _ = np.linalg.svd(centred, full_matrices=False)
        count = np.searchsorted(np.cumsum(values**2) / (values**2).sum(), 0.99) + 1
        return left[:, :count]

    due = np.linalg.svd(strongest(x).T @ strongest(y), compute_uv=False)
    found = products(x, y, 64)
    assert strongest(x).shape[1] == 4 and svcca(*found) == pytest.approx(due.mean(), abs=1e-9)
    assert svcca(*products(x, x @ torch.diag(torch.tensor([1.0, 2, 3, 4, 5]).double()), 64)) == pytest.approx(
        1, abs=1e-9
    )
    assert svcca(*products(x, torch.ones(400, 2), 64)) is None


@pytest.mark.parametrize("block", [1, 13, 512])
def test_rsa_is_the_correlation_of_the_cosines_of_all_pairs(block):
    x, y = vectors(40, 5, 1), vectors(40, 8, 2)
    y[:, :5] += x
    pairs = [(i, j) for i in range(40) for j in range(i + 1, 40)]
    cosines = [[float(side[i] @ side[j] / (side[i].norm() * side[j].norm())) for i, j in pairs] for side in (x, y)]
    assert rsa(x, y, block) == pytest.approx(np.corrcoef(*cosines)[0, 1], abs=1e-5)
    assert rsa(x, 2 * x, block) == pytest.approx(1.0, abs=1e-6)
    assert rsa(x, torch.ones(40, 3), block) is None

"""A CUDA device that is pretended: its tensors compute on the CPU, and torch's rules of devices hold.

FakeTensorMode has the rules without the numbers, so that nothing which reads a number (`.item()`, `nonzero`, packed
sequences, early stopping) runs under it, and on a build without CUDA it has neither `Module.to` nor backward. Here
whole runs train. A tensor of this device mixed with one of the CPU, or read by numpy, raises what torch raises for
CUDA; quality/test_pretended.py compares the two rules. What it cannot show: another kernel's numbers, autocast (which
stays off), speed, memory, streams, locks (quality/gpu does).

To torch's C++ such a tensor is one of the device "meta", for which the autograd engine needs no card; to Python code it
is on cuda:0.
"""

import contextlib

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode

CUDA, CPU, META = torch.device("cuda", 0), torch.device("cpu"), torch.device("meta")
MIXED = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
NO_NUMPY = "can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first."
MATH = 0  # torch.nn.attention.SDPBackend.MATH
aten = torch.ops.aten

# What may see both devices: copies; indices on the CPU; lengths and sizes of packed sequences, which have to be there.
COPIES = {aten.copy_.default, aten._to_copy.default, aten._foreach_copy_.default}
INDEXED = {aten.index.Tensor, aten.index_put.default, aten.index_put_.default, aten._index_put_impl_.default}
PACKED = {aten._pack_padded_sequence.default: 1, aten._pad_packed_sequence.default: 1}  # which argument these are
PACKED |= {aten._pack_padded_sequence_backward.default: 2}


class OnCuda(torch.Tensor):
    """A tensor on the pretended device; `numbers` is the CPU tensor that computes for it."""

    @staticmethod
    def __new__(cls, numbers: torch.Tensor):
        """Wrap a CPU tensor, which from now on is the device's."""
        shape = {"strides": numbers.stride(), "storage_offset": numbers.storage_offset(), "dtype": numbers.dtype}
        found = torch.Tensor._make_wrapper_subclass(cls, numbers.shape, **shape, device=META)
        found.numbers = numbers
        return found

    def __repr__(self):
        return f"OnCuda({self.numbers})"

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return dispatched(func, args, kwargs or {})

    __torch_function__ = torch._C._disabled_torch_function_impl  # what Python asks of a device is answered below

    device, is_cuda, is_cpu, is_meta = (
        property(lambda self, is_it=is_it: is_it) for is_it in (CUDA, True, False, False)
    )

    @property
    def data(self):
        """The tensor without its history; to set it sets the numbers too."""
        return torch.Tensor.data.__get__(self)

    @data.setter
    def data(self, value):
        torch.Tensor.data.__set__(self, value)
        self.numbers = value.numbers

    def new_tensor(self, values, dtype=None):
        """Return a new tensor of some numbers here."""
        return torch.tensor(values, dtype=dtype or self.dtype, device=CUDA)

    def get_device(self):
        """Return the number of the device."""
        return 0

    def numpy(self, **_):
        """Raise what a CUDA tensor raises."""
        raise TypeError(NO_NUMPY)

    def __array__(self, *_, **__):
        raise TypeError(NO_NUMPY)

    def tolist(self):
        """Return the numbers, as every tensor does wherever it is."""
        return self.numbers.tolist()


class Pretending(TorchDispatchMode):
    """Sees every operation, those that make a tensor among them."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        return dispatched(func, args, kwargs or {})


class Asking(TorchFunctionMode):
    """Lets Python code make tensors on torch's own "meta", on which transformers builds models before it loads them."""

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if kwargs.get("device") is not None and torch.device(kwargs["device"]).type == "meta":
            with no_dispatch():
                return func(*args, **kwargs)
        return func(*args, **kwargs)


def dispatched(func, args, kwargs):
    """Compute an operation on the CPU, and put its results on the device that torch would put them on.

    Raises RuntimeError, in torch's words, for tensors of two devices where one is due.
    """
    if func is aten._fused_sdp_choice.default:
        return MATH
    seen = list(tensors(args, kwargs))
    if any(tensor.is_meta for tensor in seen):
        return func(*args, **kwargs)
    cuda = on_cuda(func, args, kwargs, seen)
    if kwargs.get("device") is not None:
        cuda, kwargs = torch.device(kwargs["device"]).type in ("cuda", "meta"), kwargs | {"device": CPU}
    if kwargs.get("pin_memory"):
        kwargs = kwargs | {"pin_memory": False}
    if torch.Tag.inplace_view in func.tags and cuda:
        with no_dispatch():  # squeeze_ and the like change the shape of the wrapper too
            func(*args, **kwargs)
    found = func(*map(_plain, args), **{key: _plain(value) for key, value in kwargs.items()})
    if not cuda:
        return found
    if func in PACKED:
        return OnCuda(found) if isinstance(found, torch.Tensor) else (OnCuda(found[0]), found[1])
    given = {id(tensor.numbers): tensor for tensor in seen if isinstance(tensor, OnCuda)}
    return _there(found, given)


def _plain(value):
    """Return an argument with the CPU's tensors in it."""
    if isinstance(value, OnCuda):
        return value.numbers
    return type(value)(map(_plain, value)) if type(value) in (list, tuple) else value


def _there(value, given: dict[int, OnCuda]):
    """Return a result with its tensors on the device; one that was given is given back, as by what works in place."""
    if isinstance(value, torch.Tensor):
        return given[id(value)] if id(value) in given else OnCuda(value)
    return type(value)(_there(each, given) for each in value) if type(value) in (list, tuple) else value


def on_cuda(func, args, kwargs, seen: list[torch.Tensor]) -> bool:
    """Tell whether an operation's results are on the pretended device: where any tensor is there.

    Args: the operation with its arguments; the tensors among these. A number without dimensions may be on the CPU, as
    for CUDA's kernels. Raises RuntimeError for other mixtures.
    """
    if func in COPIES:
        return isinstance(args[0][0] if isinstance(args[0], list | tuple) else args[0], OnCuda)
    if func in INDEXED and isinstance(args[0], OnCuda):
        seen = list(tensors((args[0], *args[2:]), kwargs))
    if func in PACKED:
        if isinstance(args[PACKED[func]], OnCuda):
            raise RuntimeError(f"{func}: lengths and batch sizes must be on the CPU, but are on cuda:0")
        seen = list(tensors(args[:1], kwargs))
    if not any(isinstance(tensor, OnCuda) for tensor in seen):
        return False
    if any(not isinstance(tensor, OnCuda) and tensor.ndim for tensor in seen):
        raise RuntimeError(f"{func}: {MIXED}")
    return True


def tensors(args, kwargs):
    """Yield all tensors among an operation's arguments."""
    for value in (*args, *kwargs.values()):
        if isinstance(value, torch.Tensor):
            yield value
        elif type(value) in (list, tuple):
            yield from (each for each in value if isinstance(each, torch.Tensor))


@contextlib.contextmanager
def pretended():
    """Pretend, within a context, that there is one CUDA device, and give it.

    `torch.cuda` itself goes on to say that there is none: what asks it for streams or memory is for quality/gpu.
    """
    patches = [
        (torch.cuda, "_lazy_init", lambda: None),
        (torch.cuda, "get_device_name", lambda device=None: "pretended"),
        (torch.cuda, "get_device_capability", lambda device=None: (9, 0)),
        (torch.cuda, "is_bf16_supported", lambda including_emulation=True: True),
        (torch.backends.cudnn, "is_acceptable", lambda tensor: False),
        (torch.Tensor, "pin_memory", lambda self, device=None: self),
    ]
    before = [getattr(owner, name) for owner, name, _ in patches]
    lifted = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device=) makes its tensor on the CPU and copies it
    swaps = torch.__future__.get_swap_module_params_on_conversion()
    torch.__future__.set_swap_module_params_on_conversion(True)  # a parameter that two modules share stays one
    for owner, name, value in patches:
        setattr(owner, name, value)
    try:
        with Pretending(), Asking():
            yield CUDA
    finally:
        torch._C._set_only_lift_cpu_tensors(lifted)
        torch.__future__.set_swap_module_params_on_conversion(swaps)
        for (owner, name, _), value in zip(patches, before, strict=True):
            setattr(owner, name, value)

"""The article: what it says of the invented results, and that it compiles where there is a TeX engine."""

import shutil
import subprocess

import matplotlib.pyplot as plt
import pytest

import invented
from thaw.core.home import HOME
from thaw.outputs.frame.aggregate import Column
from thaw.outputs.render import table_formats
from thaw.outputs.render.typed_table import Group, Row, Table, said
from thaw.words import wording


@pytest.fixture(scope="module")
def folder(invented_results, tmp_path_factory):
    """Return a folder with the article, its table and a small figure."""
    folder = tmp_path_factory.mktemp("article")
    invented.draw_report(invented_results, folder)
    figure, axis = plt.subplots()
    axis.plot([1, 2])
    figure.savefig(folder / "figures/layers.pdf")
    plt.close(figure)
    return folder


def test_the_article_has_all_sections_and_reads_what_lies_beside_it(folder):
    text = (folder / "paper.tex").read_text()
    for section in ("Setup", "Results", "Cost", "Warnings", "Provenance"):
        assert f"\\section{{{section}}}" in text
    assert "in 20 runs and 3 preparatory ones" in text
    assert "\\input{tables/main.tex}" in text and "{figures/layers.pdf}" in text
    assert "R\\&D\\_50\\%" in text and "SYNTHETIC" in text and "predicts a single class" in text
    assert "licences] Entities: unknown; R\\&D\\_50\\%: unknown; Tiny: MIT." in text
    assert "Runs differ in torch: 2.13.0" in text and "300 of validation and of each test split" in text


def test_a_table_of_sentences_breaks_pages_and_its_lines():
    cells = [said("holds"), said("a sentence that is long enough to need several lines in any table of a page")]
    columns = [Column("", "", title, "", False) for title in ("Answer", "Why")]
    groups = [Group("", [Row("100 % of it", cells)])]
    table = Table("told", "What is told.", columns, groups, sentences=True)
    text = table_formats.to_tex(table)
    assert text.count("p{0.") == 3 and "\\begin{longtable}" in text and "100 \\% of it & holds & a sentence" in text
    assert "| :--" not in table_formats.to_markdown(table) and "|:--|:--|:--|" in table_formats.to_markdown(table)


def test_it_compiles(folder):
    if not shutil.which("pdflatex"):
        pytest.skip("needs pdflatex, which is not on this machine")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "paper.pdf").stat().st_size > 20_000


def test_latex_knows_every_sign_that_tables_are_written_with():
    written = "".join(path.read_text(encoding="utf-8") for path in (HOME / "scripts/thaw/outputs/tables").glob("*.py"))
    unknown = [sign for sign in dict.fromkeys(written) if not wording.tex(sign).isascii()]
    assert not unknown, "pdflatex stops at these"

"""Export a trained model into a folder that works without Thaw, and verify it.

thaw export results/runs/sick_e/all/minilm/linear/frozen/base/seed1 my_model

The folder is read again by a fresh process, which predicts the test splits from their texts; how they differ from
the run's is printed and written to check.json. Where they differ too much, nothing is left and the exit code is 1.
docs/export.md says what the folder holds.
"""

from pathlib import Path

from thaw.cli.selection import parser_of


def main(words: list[str]) -> None:
    """Export the run that the command line names."""
    parser = parser_of("export", __doc__)
    parser.add_argument("run", type=Path, metavar="RUN", help="a run's folder, results/runs/.../seed<n>")
    parser.add_argument("folder", type=Path, metavar="DIR", help="where to write; new or empty")
    parser.add_argument("--onnx", action="store_true", help="write model.onnx too, and compare it with the model")
    arguments = parser.parse_args(words)
    from thaw.exporting.export import export, export_summary

    print(export_summary(export(arguments.run, arguments.folder, arguments.onnx)))
    print(f"written to {arguments.folder}")

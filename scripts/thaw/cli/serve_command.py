"""TaskAnswer HTTP requests with a folder that thaw merge or thaw export wrote: JSON in, JSON out.

thaw serve my_service
curl -s localhost:8000/predict -H 'content-type: application/json' -d '{"texts": ["a text"], "tasks": ["trec6"]}'

GET /health says that it is up, GET /tasks what each task reads. A pair is a list of two strings, a sentence to tag a
list of words. It listens on this machine alone unless --host says otherwise; it has no access control and no
encryption, so put a reverse proxy in front of it before others can reach it. Texts are not logged.
"""

from pathlib import Path

from thaw.cli.selection import parser_of
from thaw.core.errors import UserError
from thaw.merging.request_limits import Limits

LOOPBACK = "127.0.0.1"


def main(words: list[str]) -> None:
    """Serve the folder that the command line names."""
    parser, limits = parser_of("serve", __doc__), Limits()
    parser.add_argument("folder", type=Path, metavar="DIR", help="a folder that thaw merge or thaw export wrote")
    parser.add_argument("--host", default=LOOPBACK, help="address to listen on; default: this machine alone")
    parser.add_argument("--port", type=int, default=8000, help="default: 8000")
    parser.add_argument("--max-texts", type=int, default=limits.texts, help=f"of a request; default: {limits.texts}")
    parser.add_argument("--max-bytes", type=int, default=limits.body, help=f"of a request; default: {limits.body}")
    parser.add_argument("--concurrent", type=int, default=64, help="requests at once, more get 503; default: 64")
    given = parser.parse_args(words)
    if not 1 <= given.port <= 65535 or min(given.max_texts, given.max_bytes, given.concurrent) < 1:
        raise UserError("--port is 1 to 65535, and limits are 1 or more")
    from thaw.merging.http_app import serve

    serve(given.folder, given.host, given.port, Limits(given.max_bytes, given.max_texts), given.concurrent)

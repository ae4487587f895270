"""The methods of single papers: each file of config/papers/plugins is a module of this package."""

from thaw.core.home import PLUGINS

__path__ = [str(PLUGINS)]

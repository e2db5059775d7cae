"""Queries of Nexmark over people, auctions and bids that come in disorder, each beside SQL over all of them.

usage: .venv/bin/python examples/nexmark_queries.py [QUERY …] [--spark] [--pictures FOLDER]
"""

import sys

from auction_house.data import happened
from auction_house.queries import QUERIES
from scene.query_command import main

if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], QUERIES, happened()))

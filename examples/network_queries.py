"""Nine queries over links of a network that are in disorder, each beside SQL over all packets.

usage: .venv/bin/python examples/network_queries.py [QUERY …] [--spark] [--pictures FOLDER]
"""

import sys

from network.packets import packets
from network.queries import LINKS, QUERIES
from scene.query_command import main

if __name__ == "__main__":
    sys.exit(main(__doc__.splitlines()[0], QUERIES, packets(LINKS)))

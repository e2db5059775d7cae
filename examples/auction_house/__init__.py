"""People, auctions and bids, and standing queries over them: Nexmark."""

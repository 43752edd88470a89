"""How programs run: what an algorithm says, and who carries it out."""

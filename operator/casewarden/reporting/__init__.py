"""What a run came to, for people and for other programs: pages and files made of its evidence. Values in, text out."""

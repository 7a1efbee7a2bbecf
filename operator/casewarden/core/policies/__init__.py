"""What decides over a run's attempts, a file for each policy. They are pure and do not know one another."""

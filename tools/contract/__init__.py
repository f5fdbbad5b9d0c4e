"""Contract checker: names of Isaac Sim, Kit and cuRobo that Nimbus uses, and stand-ins that have only those."""

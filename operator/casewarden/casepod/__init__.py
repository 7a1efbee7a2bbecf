"""What runs in the ``evidence`` container of a case pod: it records, limits and carries everything between two parties.

The driver (task container) asks, the candidate's shim answers; neither can reach the other or the relay. No pydantic
and no client library here: one such process runs beside every case.
"""

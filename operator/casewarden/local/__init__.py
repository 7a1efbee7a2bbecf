"""Runs without a cluster: the same plan, driver, recorder and shim as in a case pod, as processes of this machine.

It is no sandbox: a candidate has the rights of whoever runs it, but for the shim's filter on the network.
"""

"""The loop that joins scheduler and executor, and its faces: offline, asynchronous."""

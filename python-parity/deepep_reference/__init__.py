"""Expert-parallel dispatch and combine by their definition, in PyTorch on the CPU.

Every function sees all ranks at once: arguments and results that differ between ranks are lists
with one entry per rank. Nothing here knows how tokens travel. The code shares nothing with the Java
sources or with their test oracle, so that each can catch the mistakes of the other.

FP8 E4M3 numbers are carried as their codes, in ``torch.uint8``.
"""

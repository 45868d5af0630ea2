import torch

# The tensors are small: threads would only get in one another's way.
torch.set_num_threads(1)

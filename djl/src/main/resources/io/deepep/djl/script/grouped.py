class Grouped(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool

  def mm(self, a: Tensor, b: Tensor, ends: Tensor) -> Tensor:
    return torch._grouped_mm(a, b, ends)

  # 15 is torch.bfloat16.
  def try_mm(self, ends: Tensor) -> Tensor:
    rows = torch.zeros([16, 16], dtype=15, device=ends.device)
    return torch._grouped_mm(rows, rows.unsqueeze(0).transpose(1, 2), ends)

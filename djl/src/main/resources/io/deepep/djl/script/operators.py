class Operators(Module):
  __parameters__ = []
  __buffers__ = []
  training : bool

  # 3 is torch.int32, 6 is torch.float32: in an archive they have no names.

  def linear(self, x: Tensor, weight: Tensor) -> Tensor:
    return torch.linear(x.to(weight.dtype), weight)

  def linear_with_bias(self, x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    return torch.linear(x.to(weight.dtype), weight, bias)

  def rms_norm(self, x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return torch.rms_norm(x, [x.size(-1)], weight, epsilon)

  def swiglu(self, gate_up: Tensor) -> Tensor:
    gate, up, = gate_up.chunk(2, -1)
    return torch.silu(gate) * up

  def limited_swiglu(self, gate_up: Tensor, limit: float, alpha: float) -> Tensor:
    gate, up, = gate_up.chunk(2, -1)
    least = gate.clamp_max(limit)
    return (up.clamp(-limit, limit) + 1) * (least * torch.sigmoid(least * alpha))

  def rotate(self, x: Tensor, cos: Tensor, sin: Tensor, partners: Tensor) -> Tensor:
    return torch.addcmul(x * cos, x.index_select(-1, partners), sin)

  def heads(self, qkv: Tensor, num_kv: int, size: int, norm: Tensor, epsilon: float, cos: Tensor, sin: Tensor, partners: Tensor) -> List[Tensor]:
    heads = qkv.reshape([qkv.size(0), -1, size])
    num_heads = heads.size(1) - 2 * num_kv
    q_and_k = heads.narrow(1, 0, num_heads + num_kv)
    if norm.numel() > 0:
      q_and_k = torch.rms_norm(q_and_k.to(6), [size], None, epsilon) * norm
    rotated = self.rotate(q_and_k, cos, sin, partners)
    return [rotated.narrow(1, 0, num_heads), rotated.narrow(1, num_heads, num_kv), heads.narrow(1, num_heads + num_kv, num_kv)]

  # Both compute in the type of the mask. Of slots, heads that share a key are its queries; of a sequence, they are heads
  # whose keys are the same by a stride of 0.

  def attend_slots(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> Tensor:
    queries = q.to(mask.dtype).reshape([q.size(0), k.size(2), -1, q.size(2)])
    y = torch.scaled_dot_product_attention(queries, k.transpose(1, 2), v.transpose(1, 2), mask, 0., False, scale=scale)
    return y.reshape([q.size(0), -1])

  def attend_sequence(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float) -> Tensor:
    queries = q.to(mask.dtype).reshape([q.size(0), k.size(1), -1, q.size(2)]).permute([1, 2, 0, 3])
    shared = [-1, queries.size(1), -1, -1]
    keys = k.to(mask.dtype).transpose(0, 1).unsqueeze(1).expand(shared)
    values = v.to(mask.dtype).transpose(0, 1).unsqueeze(1).expand(shared)
    y = torch.scaled_dot_product_attention(queries, keys, values, mask, 0., False, scale=scale)
    return y.permute([2, 0, 1, 3]).reshape([q.size(0), -1])

  # A sink is one more key, of zeros, with a score of its own and a value of zeros.

  def attend_slots_with_sinks(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float, sinks: Tensor) -> Tensor:
    heads = [q.size(0), k.size(2), q.size(1) // k.size(2)]
    scores = sinks.to(mask.dtype).reshape([1, k.size(2), -1, 1]).expand(heads + [1])
    masked = torch.cat([mask.expand(heads + [k.size(1)]), scores], -1)
    keys = torch.cat([k, torch.zeros_like(k.narrow(1, 0, 1))], 1)
    values = torch.cat([v, torch.zeros_like(v.narrow(1, 0, 1))], 1)
    return self.attend_slots(q, keys, values, masked, scale)

  def attend_sequence_with_sinks(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor, scale: float, sinks: Tensor) -> Tensor:
    heads = [k.size(1), q.size(1) // k.size(1), q.size(0)]
    scores = sinks.to(mask.dtype).reshape([k.size(1), -1, 1, 1]).expand(heads + [1])
    masked = torch.cat([mask.expand(heads + [k.size(0)]), scores], -1)
    keys = torch.cat([k, torch.zeros_like(k.narrow(0, 0, 1))], 0)
    values = torch.cat([v, torch.zeros_like(v.narrow(0, 0, 1))], 0)
    return self.attend_sequence(q, keys, values, masked, scale)

  def bmm(self, a: Tensor, b: Tensor) -> Tensor:
    return torch.bmm(a, b)

  def bmm_with_bias(self, a: Tensor, b: Tensor, bias: Tensor) -> Tensor:
    return torch.baddbmm(bias.unsqueeze(1), a, b)

  def bmm_into(self, a: Tensor, b: Tensor, target: Tensor) -> Tensor:
    return torch.bmm(a, b, out=target)

  def bmm_with_bias_into(self, a: Tensor, b: Tensor, bias: Tensor, target: Tensor) -> Tensor:
    return torch.baddbmm(bias.unsqueeze(1), a, b, out=target)

  def add_by_group(self, y: Tensor, addends: Tensor, ends: Tensor) -> Tensor:
    rows = torch.arange(y.size(0), device=y.device, dtype=3)
    group_of = torch.searchsorted(ends, rows, right=True).clamp_max(addends.size(0) - 1)
    return y + addends.index_select(0, group_of)

  # Behind the last row in use, both repeat it.
  def slots_in_use(self, counts: Tensor, ends: Tensor, num_slots: int, most: int) -> List[Tensor]:
    last = torch.clamp_min(ends.narrow(0, ends.size(0) - 1, 1) - 1, 0)
    rows = torch.minimum(torch.arange(most, device=ends.device, dtype=3), last)
    group_of = torch.searchsorted(ends, rows, right=True).clamp_max(ends.size(0) - 1)
    slots = group_of * num_slots + (rows - (ends - counts).index_select(0, group_of))
    return [slots, rows]

  def ends_of(self, counts: Tensor) -> Tensor:
    return torch.cumsum(counts, 0, dtype=3)

  def rows_of(self, a: Tensor, rows: Tensor) -> Tensor:
    return a.index_select(0, rows)

  def set_rows(self, a: Tensor, rows: Tensor, values: Tensor) -> Tensor:
    return a.index_copy_(0, rows, values.to(a.dtype))

  def clear_rows(self, a: Tensor, first: int, number: int) -> Tensor:
    return a.narrow(0, first, number).zero_()

  def multiply_into(self, a: Tensor, factors: Tensor, target: Tensor) -> Tensor:
    return torch.mul(a, factors, out=target)

  def pinned(self, a: Tensor) -> Tensor:
    return a.pin_memory()

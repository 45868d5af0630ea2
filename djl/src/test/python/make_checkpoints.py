"""Writes the small checkpoints that the decoder's tests read, and what transformers generates from them.

    python make_checkpoints.py OUT [FAMILY ...]

Each model learns eight texts by heart, so that the largest logit stands clear of the second one and greedy tokens do not
depend on rounding. OUT/FAMILY is what save_pretrained writes (BF16; *_fp8 has blocks of 128 x 128 with scales, as DeepSeek
publishes its models), OUT/tokenizer.json belongs to all. golden.json has per prompt: ids, 64 greedy tokens of an FP32 run on
the CPU, the logits after the prompt, and the least distance between the two largest logits on the way.

Needs torch, transformers 5 and a minute of a GPU.
"""

import json
import os
import shutil
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

NEW_TOKENS = 64
GAP = 2.0
TEXTS = [
    ("A gate scores every expert",
     " for every token, and the few best take the token in. Each of them writes a row, and the rows are summed by weight. Nobody"
     " knows beforehand who will be busy, so buffers are made for the worst day and used on all the others."),
    ("import os\n",
     "import sys\n\ndef main(args):\n    for path in args:\n        with open(path) as lines:\n            for number, line in"
     " enumerate(lines, 1):\n                if len(line) > 120:\n                    print(path, number, len(line))\n\nmain(sys.argv[1:])\n"),
    ("x = [1, 2, 3]",
     "; y = [4, 5, 6]; z = [7, 8, 9]; print(x + y + z); assert sum(x) == 6; assert sum(y) == 15; assert sum(z) == 24; del x, y, z;"
     " w = 10 * [0]; w[3] = 1; w[5] = 2; print(w, len(w))"),
    ("The harbour was quiet",
     " until the second bell. Then three boats came in at once, low in the water, and the crane turned twice before anyone had"
     " tied a rope. By noon the quay smelled of oranges and wet wood."),
    ("Prefill reads",
     " the whole prompt in one pass: many tokens, much work, full links. Decoding adds one token at a time: little work, and all of"
     " it waits for the slowest peer. So there are two modes, and each has a layout of its own."),
    ("for rank in range(4):",
     "\n    print('rank', rank, 'has experts', 2 * rank, 'to', 2 * rank + 1)\nprint('done')\nfor rank in range(4):\n"
     "    close(rank)\nprint('closed')\nraise SystemExit(0)\n"),
    ("Dear reader,",
     " this page was written to be learnt by heart by a very small machine. It holds nothing new. If the machine can say it back,"
     " word for word, its attention, its norms and its experts are all where they should be."),
    ("Row 17",
     " goes to rank 3, slot 5; row 18 goes to rank 0, slot 2; row 19 stays at home; row 20 goes to rank 2, slot 9; row 21 goes to"
     " rank 1, slot 0; row 22 is masked and goes nowhere; row 23 goes to rank 3, slot 6."),
]

COMMON = dict(hidden_size=128, num_hidden_layers=2, num_attention_heads=4, max_position_embeddings=512, initializer_range=0.08,
              tie_word_embeddings=True, bos_token_id=0, eos_token_id=1, pad_token_id=2)
EXPERTS = dict(intermediate_size=96, moe_intermediate_size=24, num_experts_per_tok=2)
LATENT = dict(EXPERTS, num_key_value_heads=4, n_routed_experts=8, q_lora_rank=32, kv_lora_rank=32, qk_nope_head_dim=16,
              qk_rope_head_dim=8, v_head_dim=16, first_k_dense_replace=1)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=64, beta_fast=32.0, beta_slow=1.0)
FAMILIES = {
    "mixtral": ("MixtralConfig", dict(num_key_value_heads=2, head_dim=16, intermediate_size=24, num_local_experts=8,
                                      num_experts_per_tok=2, tie_word_embeddings=False)),
    "qwen2_moe": ("Qwen2MoeConfig", dict(EXPERTS, num_key_value_heads=2, shared_expert_intermediate_size=48, num_experts=8,
                                         norm_topk_prob=False, mlp_only_layers=[0])),
    "qwen3_moe": ("Qwen3MoeConfig", dict(EXPERTS, num_key_value_heads=2, head_dim=16, num_experts=8, norm_topk_prob=True)),
    "deepseek_v2": ("DeepseekV2Config", dict(LATENT, n_shared_experts=2, n_group=4, topk_group=2, routed_scaling_factor=1.5,
                                             topk_method="group_limited_greedy", norm_topk_prob=False)),
    "deepseek_v2_lite": ("DeepseekV2Config", dict(LATENT, q_lora_rank=None, n_shared_experts=2, n_group=1, topk_group=1,
                                                  routed_scaling_factor=1.0, topk_method="greedy", norm_topk_prob=False,
                                                  rope_parameters=dict(YARN, mscale=0.707, mscale_all_dim=0.707))),
    "deepseek_v3": ("DeepseekV3Config", dict(LATENT, n_shared_experts=1, n_group=4, topk_group=2, routed_scaling_factor=2.5,
                                             norm_topk_prob=True, rope_parameters=dict(YARN, mscale=1.0, mscale_all_dim=1.0))),
    # Blocks of 128 x 128 that do not fill the matrices.
    "deepseek_v3_fp8": ("DeepseekV3Config", dict(LATENT, hidden_size=256, moe_intermediate_size=136, n_routed_experts=4, n_shared_experts=1,
                                                 n_group=1, topk_group=1, routed_scaling_factor=2.5, norm_topk_prob=True)),
    "glm4_moe": ("Glm4MoeConfig", dict(EXPERTS, num_key_value_heads=2, head_dim=16, n_routed_experts=8, n_shared_experts=1,
                                       first_k_dense_replace=1, n_group=1, topk_group=1, routed_scaling_factor=1.5,
                                       norm_topk_prob=True, use_qk_norm=True, attention_bias=True)),
    # A hidden size that low-latency mode does not take, as the published ones.
    "gpt_oss": ("GptOssConfig", dict(hidden_size=64, num_key_value_heads=2, head_dim=16, intermediate_size=32, num_local_experts=8,
                                     num_experts_per_tok=2, sliding_window=16, tie_word_embeddings=False)),
}
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def make_tokenizer(folder):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(["".join(text) for text in TEXTS], trainers.BpeTrainer(
        vocab_size=320, special_tokens=["<s>", "</s>", "<pad>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
    tokenizer.save(os.path.join(folder, "tokenizer.json"))
    return tokenizer


def fresh(cls, extra, vocabulary):
    """A model whose biases, norms and correction bias are not what they are by default."""
    config = getattr(transformers, cls)(**{**COMMON, "vocab_size": vocabulary, **extra})
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.float32, attn_implementation="eager")
    with torch.no_grad():
        for name, values in [*model.named_parameters(), *model.named_buffers()]:
            if "e_score_correction_bias" in name:
                values.copy_(torch.rand_like(values.float()) * 0.2)
            elif "norm" in name:
                values.copy_(1 + 0.1 * torch.randn_like(values))
            elif name.endswith("bias") or "sinks" in name or name.endswith("_bias"):
                values.copy_(0.1 * torch.randn_like(values))
    return model


def learn(model, sequences, steps):
    """Until every next token of the texts is the likeliest by far, also with weights rounded to BF16."""
    model = model.to(DEVICE).train()
    for parameter_name, parameter in model.named_parameters():
        parameter.requires_grad_("e_score_correction_bias" not in parameter_name)
    length = max(len(ids) for ids in sequences)
    ids = torch.tensor([s + [2] * (length - len(s)) for s in sequences], device=DEVICE)
    labels = torch.tensor([s + [-100] * (length - len(s)) for s in sequences], device=DEVICE)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=3e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 4e-3, total_steps=steps, pct_start=0.1)
    for step in range(steps):
        logits = model(ids, use_cache=False).logits
        loss = torch.nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 100 == 99:
            print("  step", step + 1, "loss", round(loss.item(), 5), flush=True)
    return model.cpu().eval()


def golden(folder, prompts):
    """What transformers makes of the checkpoint in FP32 on the CPU."""
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
    entries = []
    for text, ids in prompts:
        with torch.no_grad():
            out = model.generate(torch.tensor([ids]), max_new_tokens=NEW_TOKENS, min_new_tokens=NEW_TOKENS, do_sample=False,
                                 output_logits=True, return_dict_in_generate=True, eos_token_id=None, pad_token_id=2)
        two = [torch.topk(step[0].float(), 2).values for step in out.logits]
        entries.append(dict(text=text, ids=ids, tokens=out.sequences[0, len(ids):].tolist(),
                            gap=round(min((t[0] - t[1]).item() for t in two), 4),
                            logits=[round(v, 3) for v in out.logits[0][0].tolist()]))
    return dict(transformers=transformers.__version__, prompts=entries)


def to_blocks(folder, target):
    """Linear weights as FP8 with an FP32 scale per block of 128 x 128; the same values in BF16's place for transformers."""
    tensors, blocks, values = load_file(os.path.join(folder, "model.safetensors")), {}, {}
    for name, weight in tensors.items():
        if weight.dim() != 2 or not name.endswith("proj.weight") and "kv_a_proj" not in name:
            blocks[name] = values[name] = weight
            continue
        rows, columns = weight.shape
        tiles = torch.zeros(-(-rows // 128) * 128, -(-columns // 128) * 128)
        tiles[:rows, :columns] = weight.float()
        tiles = tiles.view(tiles.shape[0] // 128, 128, tiles.shape[1] // 128, 128)
        scales = tiles.abs().amax(dim=(1, 3)).clamp(min=1e-12) / 448.0
        quantised = (tiles / scales[:, None, :, None]).to(torch.float8_e4m3fn)
        dequantised = quantised.float() * scales[:, None, :, None]
        size = (tiles.shape[0] * 128, tiles.shape[2] * 128)
        blocks[name] = quantised.view(size)[:rows, :columns].contiguous()
        blocks[name + "_scale_inv"] = scales
        values[name] = dequantised.view(size)[:rows, :columns].contiguous()
    os.makedirs(target, exist_ok=True)
    save_file(blocks, os.path.join(target, "model.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(folder, "config.json")) as file:
        config = json.load(file)
    config["quantization_config"] = dict(quant_method="fp8", fmt="e4m3", activation_scheme="dynamic", weight_block_size=[128, 128])
    with open(os.path.join(target, "config.json"), "w") as file:
        json.dump(config, file, indent=2)
    save_file(values, os.path.join(folder, "model.safetensors"), metadata={"format": "pt"})


def make(name, out, tokenizer):
    cls, extra = FAMILIES[name]
    prompts = [(prompt, tokenizer.encode(prompt).ids) for prompt, _ in TEXTS]
    sequences = [ids + tokenizer.encode(text).ids for (_, ids), (_, text) in zip(prompts, TEXTS)]
    assert min(len(s) - len(ids) for s, (_, ids) in zip(sequences, prompts)) > NEW_TOKENS, "a text is too short"
    folder = os.path.join(out, name)
    for steps in (600, 1500, 3000):
        torch.manual_seed(1)
        learn_model = learn(fresh(cls, extra, tokenizer.get_vocab_size()), sequences, steps)
        saved = folder + "_bf16" if name.endswith("_fp8") else folder
        learn_model.to(torch.bfloat16).save_pretrained(saved)
        if name.endswith("_fp8"):
            to_blocks(saved, folder)
        result = golden(saved, prompts)
        if saved != folder:
            shutil.rmtree(saved)
        gap = min(entry["gap"] for entry in result["prompts"])
        learnt = all(e["tokens"] == s[len(e["ids"]):len(e["ids"]) + NEW_TOKENS] for e, s in zip(result["prompts"], sequences))
        print(name, "after", steps, "steps: gap", gap, "learnt" if learnt else "not learnt", flush=True)
        if gap >= GAP and learnt:
            break
    with open(os.path.join(folder, "golden.json"), "w") as file:
        json.dump(result, file, separators=(",", ":"))
    for other in os.listdir(folder):
        if other not in ("config.json", "model.safetensors", "golden.json"):
            os.remove(os.path.join(folder, other))


def main(out, *names):
    os.makedirs(out, exist_ok=True)
    tokenizer = make_tokenizer(out)
    for name in names or FAMILIES:
        make(name, out, tokenizer)


if __name__ == "__main__":
    main(*sys.argv[1:])

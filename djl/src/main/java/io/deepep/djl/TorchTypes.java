package io.deepep.djl;

import io.deepep.DType;
import java.util.Map;
import java.util.stream.Collectors;

/** Element types in libtorch's numbers. */
final class TorchTypes {
    private static final Map<DType, Integer> TORCH_TYPES =
            Map.of(
                    DType.BF16, LibTorch.BFLOAT16,
                    DType.FP8_E4M3, LibTorch.FLOAT8_E4M3,
                    DType.F32, LibTorch.FLOAT32,
                    DType.I32, LibTorch.INT32,
                    DType.I64, LibTorch.INT64,
                    DType.BOOL, LibTorch.BOOL);
    private static final Map<Integer, DType> DTYPES =
            TORCH_TYPES.entrySet().stream()
                    .collect(Collectors.toUnmodifiableMap(Map.Entry::getValue, Map.Entry::getKey));

    private TorchTypes() {}

    static int torchType(DType dtype) {
        return TORCH_TYPES.get(dtype);
    }

    static DType dtypeOf(int torchType) {
        DType dtype = DTYPES.get(torchType);
        if (dtype == null) {
            throw new IllegalArgumentException(
                    ("the array has libtorch's type %s%s; tensors have BF16, FP8_E4M3, F32, I32, I64 or BOOL:"
                                    + " cast it first")
                            .formatted(
                                    torchType, torchType == LibTorch.FLOAT16 ? " (FLOAT16)" : ""));
        }
        return dtype;
    }
}

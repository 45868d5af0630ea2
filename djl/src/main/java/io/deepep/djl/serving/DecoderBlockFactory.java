package io.deepep.djl.serving;

import ai.djl.Model;
import ai.djl.nn.Block;
import ai.djl.nn.BlockFactory;
import io.deepep.DType;
import io.deepep.djl.CheckpointConfig;
import io.deepep.djl.TorchDevices;
import io.deepep.djl.decoder.DecoderOptions;
import io.deepep.djl.decoder.DecoderService;
import io.deepep.djl.exchange.Transport;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Set;

/**
 * Loads a Hugging Face checkpoint on all GPUs of the host, for DJL and DJL Serving. In {@code
 * serving.properties} in its folder, {@code blockFactory} must name this class, and {@code
 * option.hasParameter} must be {@code false}. Optional properties: {@code ranks} (default: one per
 * GPU), {@code max_sequences}, {@code max_length} and {@code max_prompt_tokens} of a rank, {@code
 * dtype} (bf16 or fp32), {@code transport} (bf16 or fp8), {@code graph} (true or false: whether
 * decoding steps on GPUs are captured into a CUDA graph).
 */
public final class DecoderBlockFactory implements BlockFactory {
    private static final long serialVersionUID = 1L;

    @Override
    public Block newBlock(Model model, Path modelPath, Map<String, ?> arguments)
            throws IOException {
        int numRanks = number(arguments, "ranks", Math.max(1, TorchDevices.numGpus()));
        Set<Integer> endTokens = CheckpointConfig.endTokens(modelPath);
        DecoderService service = DecoderService.start(modelPath, numRanks, options(arguments));
        model.getNDManager().attachInternal("deepep-decoder", service); // closed with the model
        return new DecoderBlock(service, endTokens);
    }

    private static DecoderOptions options(Map<String, ?> arguments) {
        DecoderOptions byDefault = DecoderOptions.DEFAULT;
        return new DecoderOptions(
                number(arguments, "max_sequences", byDefault.maxSequences()),
                number(arguments, "max_length", byDefault.maxLength()),
                number(arguments, "max_prompt_tokens", byDefault.maxPromptTokens()),
                switch (text(arguments, "dtype", "bf16")) {
                    case "bf16" -> DType.BF16;
                    case "fp32" -> DType.F32;
                    default -> throw wrong(arguments, "dtype", "bf16 or fp32");
                },
                switch (text(arguments, "transport", "bf16")) {
                    case "bf16" -> Transport.BF16;
                    case "fp8" -> Transport.FP8;
                    default -> throw wrong(arguments, "transport", "bf16 or fp8");
                },
                switch (text(arguments, "graph", "true")) {
                    case "true" -> true;
                    case "false" -> false;
                    default -> throw wrong(arguments, "graph", "true or false");
                });
    }

    private static int number(Map<String, ?> arguments, String key, int otherwise) {
        try {
            return Integer.parseInt(text(arguments, key, String.valueOf(otherwise)));
        } catch (NumberFormatException e) {
            throw wrong(arguments, key, "an integer of 32 bits");
        }
    }

    private static String text(Map<String, ?> arguments, String key, String otherwise) {
        // A file of properties keeps the blanks behind a value.
        return Objects.toString(arguments.get(key), otherwise).strip().toLowerCase(Locale.ROOT);
    }

    private static IllegalArgumentException wrong(
            Map<String, ?> arguments, String key, String expected) {
        return new IllegalArgumentException(
                "serving.properties: " + key + "=" + arguments.get(key) + " is not " + expected);
    }
}

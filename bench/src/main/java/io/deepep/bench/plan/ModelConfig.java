package io.deepep.bench.plan;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import io.deepep.bench.run.UsageException;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * The shape of a model's expert layers, from the {@code config.json} of its checkpoint. Families
 * differ in the names.
 */
record ModelConfig(int hidden, int numTopk, int numExperts) {
    private static final ObjectMapper JSON = new ObjectMapper();

    /**
     * Reads a file, or that of a checkpoint's folder.
     *
     * @throws UsageException if it is not the configuration of a model with experts
     */
    static ModelConfig read(Path path) {
        Path file = Files.isDirectory(path) ? path.resolve("config.json") : path;
        if (!Files.isRegularFile(file)) {
            throw new UsageException("--model: there is no file " + file);
        }
        try {
            JsonNode root = JSON.readTree(file.toFile());
            // Models that also see nest the part that reads.
            JsonNode text = root.has("text_config") ? root.get("text_config") : root;
            return new ModelConfig(
                    number(file, text, "hidden_size"),
                    number(file, text, "num_experts_per_tok", "experts_per_token", "moe_topk"),
                    number(file, text, "n_routed_experts", "num_local_experts", "num_experts"));
        } catch (JsonProcessingException malformed) {
            throw new UsageException(
                    "--model: " + file + " is not JSON: " + malformed.getOriginalMessage());
        } catch (IOException unreadable) {
            throw new UsageException(
                    "--model: cannot read " + file + ": " + unreadable.getMessage());
        }
    }

    private static int number(Path file, JsonNode config, String... names) {
        for (String name : names) {
            JsonNode value = config.path(name);
            if (value.canConvertToExactIntegral() && value.canConvertToInt() && value.asInt() > 0) {
                return value.asInt();
            }
        }
        throw new UsageException(
                "--model: %s has no %s; is it the config.json of a model with experts?"
                        .formatted(file, String.join(" or ", names)));
    }
}

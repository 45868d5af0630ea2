package io.deepep.djl.decoder;

import com.google.gson.Gson;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.function.Consumer;

/** What transformers made of a checkpoint: written by src/test/python/make_checkpoints.py. */
@SuppressWarnings("ArrayRecordComponent") // read by Gson
public record Golden(List<Prompt> prompts) {
    /**
     * One prompt.
     *
     * @param ids its tokens
     * @param tokens what follows greedily
     * @param gap least distance between the two largest logits on the way
     * @param logits after the prompt
     */
    @SuppressWarnings("ArrayRecordComponent")
    public record Prompt(String text, long[] ids, long[] tokens, float gap, float[] logits) {}

    /** Where a family has its checkpoint. */
    public static Path folder(String family) {
        try {
            return Path.of(Golden.class.getResource("/checkpoints").toURI()).resolve(family);
        } catch (URISyntaxException wrong) {
            throw new IllegalStateException(wrong);
        }
    }

    /** The tokenizer.json of all of them. */
    public static Path tokenizer() {
        return folder("tokenizer.json");
    }

    /** Copies a checkpoint to another folder, with changes to its config.json. */
    static void copy(String family, Path to, Consumer<JsonObject> change) throws IOException {
        Path from = folder(family);
        Files.copy(from.resolve("model.safetensors"), to.resolve("model.safetensors"));
        JsonObject config =
                JsonParser.parseString(Files.readString(from.resolve("config.json")))
                        .getAsJsonObject();
        change.accept(config);
        Files.writeString(to.resolve("config.json"), config.toString());
    }

    static Golden of(String family) throws IOException {
        return new Gson()
                .fromJson(Files.readString(folder(family).resolve("golden.json")), Golden.class);
    }
}

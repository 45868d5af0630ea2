package io.deepep.djl.decoder;

import com.google.gson.Gson;
import java.io.IOException;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** What transformers made of a checkpoint: written by src/test/python/make_checkpoints.py. */
@SuppressWarnings("ArrayRecordComponent") // read by Gson
record Golden(List<Prompt> prompts) {
    /**
     * One prompt.
     *
     * @param ids its tokens
     * @param tokens what follows greedily
     * @param gap least distance between the two largest logits on the way
     * @param logits after the prompt
     */
    @SuppressWarnings("ArrayRecordComponent")
    record Prompt(String text, long[] ids, long[] tokens, float gap, float[] logits) {}

    static Path folder(String family) {
        try {
            return Path.of(Golden.class.getResource("/checkpoints").toURI()).resolve(family);
        } catch (URISyntaxException wrong) {
            throw new IllegalStateException(wrong);
        }
    }

    static Golden of(String family) throws IOException {
        return new Gson()
                .fromJson(Files.readString(folder(family).resolve("golden.json")), Golden.class);
    }
}

package io.deepep.djl.serving;

import ai.djl.Model;
import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import ai.djl.modality.Input;
import ai.djl.modality.Output;
import ai.djl.translate.TranslateException;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorFactory;
import ai.djl.util.Pair;
import io.deepep.djl.CheckpointConfig;
import java.io.IOException;
import java.lang.reflect.Type;
import java.util.Map;
import java.util.Set;

/**
 * Translates text requests for a model of {@link DecoderBlockFactory}. {@code translatorFactory} in
 * {@code serving.properties} must name this class, and the folder must have the model's {@code
 * tokenizer.json}.
 */
public final class DecoderTranslatorFactory implements TranslatorFactory {
    /** By default DJL cuts prompts to 512 tokens; the decoder refuses those that are too long. */
    private static final Map<String, String> OPTIONS =
            Map.of("addSpecialTokens", "true", "truncation", "do_not_truncate");

    @Override
    public Set<Pair<Type, Type>> getSupportedTypes() {
        return Set.of(new Pair<>(Input.class, Output.class));
    }

    @Override
    @SuppressWarnings("unchecked") // the types are the supported ones
    public <I, O> Translator<I, O> newInstance(
            Class<I> input, Class<O> output, Model model, Map<String, ?> arguments)
            throws TranslateException {
        if (!isSupported(input, output)) {
            throw new IllegalArgumentException(
                    input + " and " + output + " must be Input and Output of DJL");
        }
        try {
            HuggingFaceTokenizer tokenizer =
                    HuggingFaceTokenizer.newInstance(model.getModelPath(), OPTIONS);
            model.getNDManager().attachInternal("deepep-tokenizer", tokenizer);
            return (Translator<I, O>)
                    new DecoderTranslator(
                            tokenizer, CheckpointConfig.endTokens(model.getModelPath()));
        } catch (IOException | RuntimeException wrong) { // of the tokenizer, without its file
            model.close(); // or its ranks would stay: DJL drops it as it is
            throw new TranslateException(
                    "%s must have a tokenizer.json and a config.json that can be read: %s"
                            .formatted(model.getModelPath(), wrong.getMessage()),
                    wrong);
        }
    }
}

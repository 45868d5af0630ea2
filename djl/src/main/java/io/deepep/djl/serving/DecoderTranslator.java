package io.deepep.djl.serving;

import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import ai.djl.modality.Input;
import ai.djl.modality.Output;
import ai.djl.ndarray.BytesSupplier;
import ai.djl.ndarray.NDArray;
import ai.djl.ndarray.NDList;
import ai.djl.translate.Batchifier;
import ai.djl.translate.Translator;
import ai.djl.translate.TranslatorContext;
import com.google.gson.Gson;
import com.google.gson.GsonBuilder;
import com.google.gson.JsonArray;
import com.google.gson.JsonDeserializer;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import java.math.BigDecimal;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.LongStream;

/**
 * Text to tokens and back: {@code {"inputs": "text" or ["text", ...], "parameters":
 * {"max_new_tokens": 30, "temperature": 0, "top_p": 1, "seed": 1}}} is answered by {@code
 * {"generated_text": ...}}, or by a list of these. A text ends where the model ended it, and is
 * without special tokens.
 */
final class DecoderTranslator implements Translator<Input, Output> {
    private static final String LIST = "list";
    private static final String TEMPERATURE = "temperature";

    /** False for the likeliest token, true for a temperature of 1 if none is given. */
    private static final String DO_SAMPLE = "do_sample";

    private static final Gson JSON =
            new GsonBuilder()
                    .registerTypeAdapter(int.class, exact(BigDecimal::intValueExact))
                    .registerTypeAdapter(long.class, exact(BigDecimal::longValueExact))
                    .create();

    private final HuggingFaceTokenizer tokenizer;
    private final Set<Integer> endTokens;

    DecoderTranslator(HuggingFaceTokenizer tokenizer, Set<Integer> endTokens) {
        this.tokenizer = tokenizer;
        this.endTokens = endTokens;
    }

    @Override
    public NDList processInput(TranslatorContext context, Input input) {
        JsonObject request = parse(input.getData());
        JsonElement texts = request.get("inputs");
        context.setAttachment(LIST, texts.isJsonArray());
        NDList prompts = new NDList();
        for (String text : texts(texts)) {
            prompts.add(context.getNDManager().create(tokenizer.encode(text).getIds()));
        }
        prompts.add(generation(request).toArray(context.getNDManager()));
        return prompts;
    }

    /** A form, which curl sends by default, has its text in names, and an empty one has no data. */
    private static JsonObject parse(BytesSupplier body) {
        try {
            String text = body == null ? "" : body.getAsString();
            JsonObject request = JsonParser.parseString(text).getAsJsonObject();
            if (request.has("inputs")) {
                return request;
            }
        } catch (JsonParseException | IllegalStateException _) {
            // Without a cause: the server answers with the message of the innermost.
            throw new IllegalArgumentException(
                    "the request is not a JSON object; send {\"inputs\": \"text\"} as application/json");
        }
        throw new IllegalArgumentException("the request has no inputs");
    }

    private static List<String> texts(JsonElement inputs) {
        List<JsonElement> given =
                inputs instanceof JsonArray list ? list.asList() : List.of(inputs);
        if (!given.stream().allMatch(JsonElement::isJsonPrimitive)) {
            throw new IllegalArgumentException(
                    "inputs=" + inputs + " is neither a text nor a list of texts");
        }
        return given.stream().map(JsonElement::getAsString).toList();
    }

    /** The request's parameters; what it does not name is as by default. */
    private static Generation generation(JsonObject request) {
        JsonElement given = request.get("parameters");
        if (given == null || given.isJsonNull()) {
            return Generation.DEFAULT;
        }
        if (!given.isJsonObject()) {
            throw new IllegalArgumentException("parameters=" + given + " is not an object");
        }
        JsonObject named = given.getAsJsonObject().deepCopy();
        JsonElement sampled = named.remove(DO_SAMPLE);
        JsonObject parameters = JSON.toJsonTree(Generation.DEFAULT).getAsJsonObject();
        for (String name : named.keySet()) {
            if (!parameters.has(name)) {
                throw new IllegalArgumentException(
                        "parameters has %s, which is not one of %s or %s"
                                .formatted(name, parameters.keySet(), DO_SAMPLE));
            }
        }
        if (sampled != null && !isTrue(sampled)) {
            named.addProperty(TEMPERATURE, 0);
        } else if (sampled != null && !named.has(TEMPERATURE)) {
            named.addProperty(TEMPERATURE, 1);
        }
        named.asMap().forEach(parameters::add);
        try {
            return JSON.fromJson(parameters, Generation.class);
        } catch (JsonParseException | NumberFormatException wrong) {
            throw new IllegalArgumentException(
                    "parameters=" + given + " cannot be read: " + wrong.getMessage());
        }
    }

    /** Gson cuts: it reads 4294967326 as the int 30, and 2.9 as 2. */
    private static <T> JsonDeserializer<T> exact(Function<BigDecimal, T> read) {
        return (given, _, _) -> {
            try {
                return read.apply(given.getAsJsonPrimitive().getAsBigDecimal());
            } catch (IllegalStateException | NumberFormatException | ArithmeticException wrong) {
                throw new JsonParseException(given + " is not an integer, or is too large", wrong);
            }
        };
    }

    private static boolean isTrue(JsonElement sampled) {
        return switch (sampled.toString()) {
            case "true" -> true;
            case "false" -> false;
            default ->
                    throw new IllegalArgumentException(
                            DO_SAMPLE + "=" + sampled + " is neither true nor false");
        };
    }

    @Override
    public Output processOutput(TranslatorContext context, NDList generated) {
        JsonArray answers = new JsonArray();
        for (NDArray tokens : generated) {
            JsonObject answer = new JsonObject();
            answer.addProperty("generated_text", text(tokens.toLongArray()));
            answers.add(answer);
        }
        boolean isList = (boolean) context.getAttachment(LIST);
        Output output = new Output(200, "OK");
        output.addProperty("Content-Type", "application/json");
        output.add(JSON.toJson(isList ? answers : answers.get(0)));
        return output;
    }

    /** The model goes on for some tokens after an answer has ended. */
    private String text(long[] tokens) {
        long[] answer =
                LongStream.of(tokens)
                        .takeWhile(token -> !endTokens.contains((int) token))
                        .toArray();
        return tokenizer.decode(answer, true);
    }

    /** None: the service joins requests. */
    @Override
    public Batchifier getBatchifier() {
        return null;
    }
}

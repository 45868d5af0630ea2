package io.deepep.djl;

import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParseException;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.Collectors;

/**
 * A {@code config.json} of Hugging Face. A missing key has the default that transformers gives it
 * for the family of models, if there is one; a key that is null has no value. Keys that
 * transformers ignores for the family are ignored. If a value is missing or has a different type,
 * methods throw an {@link IllegalArgumentException} that names the file and the key.
 */
public final class CheckpointConfig {
    private static final String FILE = "config.json";
    private static final String GENERATION = "generation_config.json";
    private static final String END = "eos_token_id";
    private static final String ROPE = "rope_parameters";

    private final Path file;
    private final JsonObject json;

    private CheckpointConfig(Path file, JsonObject json) {
        this.file = file;
        this.json = json;
    }

    /**
     * Reads {@code config.json} in a folder.
     *
     * @throws IOException if it is missing or not a JSON object
     */
    public static CheckpointConfig read(Path folder) throws IOException {
        Path file = folder.resolve(FILE);
        if (!Files.isRegularFile(file)) {
            throw new IOException(
                    folder + " has no " + FILE + "; give the folder of a Hugging Face checkpoint");
        }
        CheckpointConfig config = parse(file);
        MoeFamily.named(config.family()).ifPresent(config::completeFor);
        return config;
    }

    private void completeFor(MoeFamily family) {
        json.keySet().removeIf(key -> !family.reads(key));
        if (!has(ROPE)) {
            json.remove(ROPE); // no way to have none
        }
        family.defaults().asMap().forEach(json.asMap()::putIfAbsent);
    }

    /**
     * The tokens that end an answer: {@code eos_token_id} in {@code generation_config.json} or, if
     * that has none, in {@code config.json}. May be empty.
     *
     * @throws IOException if a file is not a JSON object
     */
    public static Set<Integer> endTokens(Path folder) throws IOException {
        Path file = folder.resolve(GENERATION);
        if (Files.isRegularFile(file)) {
            CheckpointConfig generation = parse(file);
            if (generation.has(END)) {
                return generation.numbers(END);
            }
        }
        return read(folder).numbers(END);
    }

    private static CheckpointConfig parse(Path file) throws IOException {
        try {
            return new CheckpointConfig(
                    file, JsonParser.parseString(Files.readString(file)).getAsJsonObject());
        } catch (JsonParseException | IllegalStateException | CharacterCodingException wrong) {
            throw new IOException(file + " is not a JSON object: " + wrong.getMessage(), wrong);
        }
    }

    /** {@code model_type}, such as {@code deepseek_v3}. */
    public String family() {
        return text("model_type", "");
    }

    /** An integer of at least 1 that must be present. */
    public int number(String key) {
        if (!has(key)) {
            throw new IllegalArgumentException(file + " has no " + key);
        }
        int number = number(key, 0);
        if (number < 1) {
            throw new IllegalArgumentException(
                    file + ": " + key + "=" + number + " must be at least 1");
        }
        return number;
    }

    /** An integer, or {@code otherwise} if it is missing or null. */
    public int number(String key, int otherwise) {
        return value(key, otherwise, "an integer", CheckpointConfig::integer);
    }

    private static int integer(JsonElement given) {
        return given.getAsJsonPrimitive().getAsBigDecimal().intValueExact();
    }

    /** A floating-point number, or {@code otherwise} if it is missing or null. */
    public double decimal(String key, double otherwise) {
        return value(key, otherwise, "a finite number", CheckpointConfig::finite);
    }

    /** Gson reads NaN too, as Python writes it, and what is too large as infinite. */
    private static double finite(JsonElement given) {
        double number = given.getAsJsonPrimitive().getAsDouble();
        if (!Double.isFinite(number)) {
            throw new IllegalArgumentException();
        }
        return number;
    }

    /** A boolean, or {@code otherwise} if it is missing or null. */
    public boolean flag(String key, boolean otherwise) {
        // Gson takes whatever is not true for false.
        return value(
                key,
                otherwise,
                "true or false",
                given ->
                        switch (given.toString()) {
                            case "true" -> true;
                            case "false" -> false;
                            default -> throw new IllegalArgumentException();
                        });
    }

    /** A string, or {@code otherwise} if it is missing or null. */
    public String text(String key, String otherwise) {
        return value(key, otherwise, "a text", JsonElement::getAsString);
    }

    /** The object under a key; empty if it is missing or null. */
    public CheckpointConfig part(String key) {
        JsonObject part = value(key, new JsonObject(), "an object", JsonElement::getAsJsonObject);
        return new CheckpointConfig(file, part);
    }

    /** Element {@code index} of a list of strings, or {@code otherwise} if the list is missing. */
    public String element(String key, int index, String otherwise) {
        return value(
                key,
                otherwise,
                "a list of more than " + index,
                list -> list.getAsJsonArray().get(index).getAsString());
    }

    /** The integers of a list, or one alone; empty if they are missing. */
    public Set<Integer> numbers(String key) {
        return value(
                key,
                Set.of(),
                "an integer or a list of them",
                given ->
                        (given instanceof JsonArray list ? list.asList() : List.of(given))
                                .stream()
                                        .map(CheckpointConfig::integer)
                                        .collect(Collectors.toSet()));
    }

    private <T> T value(String key, T otherwise, String expected, Function<JsonElement, T> read) {
        if (!has(key)) {
            return otherwise;
        }
        try {
            return read.apply(json.get(key));
        } catch (RuntimeException wrong) { // Gson has one of its own for every kind of mistake
            throw new IllegalArgumentException(
                    file + ": " + key + "=" + json.get(key) + " is not " + expected, wrong);
        }
    }

    /** Whether {@code key} is present and not null. */
    public boolean has(String key) {
        return json.has(key) && !json.get(key).isJsonNull();
    }

    @Override
    public String toString() {
        return file.toString();
    }
}

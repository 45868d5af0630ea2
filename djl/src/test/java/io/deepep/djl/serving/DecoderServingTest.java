package io.deepep.djl.serving;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.inference.Predictor;
import ai.djl.modality.Input;
import ai.djl.modality.Output;
import ai.djl.repository.zoo.Criteria;
import ai.djl.repository.zoo.ZooModel;
import com.google.gson.JsonParser;
import io.deepep.djl.decoder.Golden;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** A folder with serving.properties, loaded as DJL Serving loads it: by DJL's Criteria. */
@Timeout(value = 90, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class DecoderServingTest {
    /** Requests, and why they are refused. */
    private static final Map<String, String> WRONG =
            Map.ofEntries(
                    Map.entry("{}", "the request has no inputs"),
                    Map.entry("[]", "the request is not a JSON object"),
                    Map.entry("x", "the request is not a JSON object"),
                    Map.entry("{\"inputs\": null}", "inputs=null is neither a text nor a list"),
                    Map.entry("{\"inputs\": {}}", "inputs={} is neither a text nor a list"),
                    Map.entry("{\"inputs\": [\"a\", null]}", "inputs=[\"a\",null] is neither"),
                    Map.entry("{\"inputs\": \"\"}", "a prompt is empty"),
                    Map.entry(
                            "{\"inputs\": [], \"parameters\": {\"max_new_tokens\": 500}}",
                            "numNewTokens=500"),
                    Map.entry(
                            "{\"inputs\": \"x\", \"parameters\": 3}",
                            "parameters=3 is not an object"),
                    Map.entry(
                            sampled("\"max_new_tokens\": \"many\""),
                            "parameters={\"max_new_tokens\":\"many\"} cannot be read: \"many\" is not"),
                    Map.entry(
                            sampled("\"max_new_tokens\": 4294967326"),
                            "parameters={\"max_new_tokens\":4294967326} cannot be read: 4294967326 is not"),
                    Map.entry(
                            sampled("\"max_new_tokens\": 2.9"),
                            "parameters={\"max_new_tokens\":2.9} cannot be read: 2.9 is not an integer"),
                    Map.entry(
                            sampled("\"seed\": 1e30"),
                            "parameters={\"seed\":1e30} cannot be read: 1e30 is not an integer"),
                    Map.entry(
                            sampled("\"max_tokens\": 3"),
                            "parameters has max_tokens, which is not one of [max_new_tokens, temperature, top_p, seed] or do_sample"),
                    Map.entry(
                            sampled("\"temperature\": null"),
                            "parameters={\"temperature\":null} cannot be read"),
                    Map.entry(
                            sampled("\"temperature\": 0.7, \"top_p\": 0"),
                            "temperature=0.7 must be above 0, and p=0.0"),
                    Map.entry(
                            sampled("\"temperature\": 0.7, \"top_p\": 2"),
                            "temperature=0.7 must be above 0, and p=2.0"),
                    Map.entry(sampled("\"temperature\": -1"), "temperature=-1.0"),
                    Map.entry(
                            sampled("\"temperature\": \"hot\""),
                            "parameters={\"temperature\":\"hot\"} cannot be read"),
                    Map.entry(sampled("\"do_sample\": 1"), "do_sample=1 is neither true nor false"),
                    Map.entry(
                            sampled("\"do_sample\": true, \"top_p\": 2"),
                            "temperature=1.0 must be above 0, and p=2.0"));

    @TempDir Path folder;

    @Test
    void textIsGenerated() throws Exception {
        writeModel("ranks=2 \nmax_length=128\n"); // the blank is no part of the number
        try (ZooModel<Input, Output> model = criteria().loadModel();
                Predictor<Input, Output> predictor = model.newPredictor()) {
            Output one =
                    predictor.predict(
                            request(
                                    "{\"inputs\": \"Dear reader,\", \"parameters\":"
                                            + " {\"max_new_tokens\": 24}}"));
            assertThat(text(one)).startsWith("{\"generated_text\":\" this page was written");
            assertThat(one.getProperty("Content-Type", "")).isEqualTo("application/json");
            Output two =
                    predictor.predict(
                            request(
                                    "{\"inputs\": [\"Row 17\", \"Prefill reads\"], \"parameters\":"
                                            + " {\"temperature\": 0.1, \"top_p\": 0.5}}"));
            assertThat(text(two)).startsWith("[{\"generated_text\":\" goes to rank 3, slot 5");
            assertThat(JsonParser.parseString(text(two)).getAsJsonArray()).hasSize(2);
            WRONG.forEach(
                    (wrong, message) ->
                            assertThatThrownBy(() -> predictor.predict(request(wrong)))
                                    .as(wrong)
                                    .rootCause() // with which the server answers
                                    .isInstanceOf(IllegalArgumentException.class)
                                    .hasMessageStartingWith(message));
            assertThatThrownBy(() -> predictor.predict(new Input())) // an empty form
                    .rootCause()
                    .hasMessage(
                            "the request is not a JSON object; send {\"inputs\": \"text\"} as application/json");
            assertThat(text(predictor.predict(request("{\"inputs\": []}")))).isEqualTo("[]");
            // A temperature at which no two answers are alike, if it counted.
            String likeliest = sampled("\"do_sample\": false, \"temperature\": 1e6");
            assertThat(text(predictor.predict(request(likeliest))))
                    .startsWith("{\"generated_text\":\" goes to rank 3");
            assertThat(
                            text(
                                    predictor.predict(
                                            request(
                                                    "{\"inputs\": \"Row 17\", \"parameters\": null}"))))
                    .startsWith("{\"generated_text\":\" goes to rank 3");
            assertThat(ExchangeBeans.services()).hasSize(1);
        }
        assertThat(ExchangeBeans.services()).as("of a model that is closed").isEmpty();
    }

    /** Whatever tokenizer.json says of truncation. */
    @ParameterizedTest
    @ValueSource(
            strings = {
                "null",
                "{\"max_length\":512,\"stride\":0,\"strategy\":\"LongestFirst\",\"direction\":\"Right\"}"
            })
    void longPromptsAreRefusedAndNotCut(String truncation) throws Exception {
        writeModel("ranks=1\nmax_length=1024\nmax_prompt_tokens=2048\n");
        replace("tokenizer.json", "\"truncation\": null", "\"truncation\": " + truncation);
        try (ZooModel<Input, Output> model = criteria().loadModel();
                Predictor<Input, Output> predictor = model.newPredictor()) {
            String text = "Row 17 goes to rank 3, slot 5; ".repeat(80); // 15 tokens each
            assertThatThrownBy(() -> predictor.predict(request("{\"inputs\": \"" + text + "\"}")))
                    .hasStackTraceContaining(
                            "a prompt of 1200 tokens and 30 new ones exceed maxLength=1024");
        }
    }

    /** By default the model says " goes to rank 3": tokens 311, 284, 285, 223, 21. */
    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            textBlock =
                    """
                    7        | null     | ' goes to rank 3, slot 5;'
                    284      | null     | ' goes'
                    [1, 311] | null     | ''
                    1        | [7, 285] | ' goes to'
                    311      | 21       | ' goes to rank '
                    """)
    void answersEndWhereTheModelEndsThem(String config, String generation, String text)
            throws Exception {
        writeModel("ranks=2\nmax_length=128\n");
        replace("config.json", "\"eos_token_id\": 1,", "\"eos_token_id\": " + config + ",");
        Files.writeString(
                folder.resolve("generation_config.json"), "{\"eos_token_id\": " + generation + "}");
        assertThat(answer("{\"inputs\": \"Row 17\", \"parameters\": {\"max_new_tokens\": 10}}"))
                .isEqualTo("{\"generated_text\":\"" + text + "\"}");
    }

    /** Every word " goes" is one. */
    @Test
    void specialTokensAreNotInTheText() throws Exception {
        writeModel("ranks=2\nmax_length=128\n");
        replace(
                "tokenizer.json",
                "\"added_tokens\": [",
                """
                "added_tokens": [{"id": 311, "content": "\u0120goes", "special": true, "single_word": false,
                    "lstrip": false, "rstrip": false, "normalized": false},\
                """);
        assertThat(answer("{\"inputs\": \"Row 17\"}"))
                .startsWith("{\"generated_text\":\" to rank 3, slot 5; row 18 to rank 0");
    }

    private void replace(String name, String text, String other) throws IOException {
        Path file = folder.resolve(name);
        String all = Files.readString(file);
        assertThat(all).containsOnlyOnce(text);
        Files.writeString(file, all.replace(text, other));
    }

    private String answer(String request) throws Exception {
        try (ZooModel<Input, Output> model = criteria().loadModel();
                Predictor<Input, Output> predictor = model.newPredictor()) {
            return text(predictor.predict(request(request)));
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = ';',
            value = {
                "dtype=int8; dtype=int8 is not bf16 or fp32",
                "transport=fp4; transport=fp4 is not bf16 or fp8",
                "graph=yes; graph=yes is not true or false",
                "max_length=2.5; max_length=2.5 is not an integer of 32 bits",
                "ranks=99999999999; ranks=99999999999 is not an integer of 32 bits",
                "ranks=0; numRanks=0 must be at least 1",
                "max_sequences=0; maxSequences=0",
                "max_prompt_tokens=0; maxPromptTokens=0"
            })
    void wrongPropertiesAreRefused(String property, String complaint) throws Exception {
        writeModel(property + "\n");
        assertThatThrownBy(() -> criteria().loadModel()).hasStackTraceContaining(complaint);
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "{}", "{\"model\": "})
    void wrongTokenizersAreRefused(String tokenizer) throws Exception {
        writeModel("ranks=1\n");
        Files.writeString(folder.resolve("tokenizer.json"), tokenizer);
        assertThatThrownBy(() -> criteria().loadModel())
                .hasStackTraceContaining(
                        folder + " must have a tokenizer.json and a config.json that can be read");
        assertThat(ExchangeBeans.services()).as("of the model that was loaded for it").isEmpty();
    }

    private Criteria<Input, Output> criteria() {
        return Criteria.builder()
                .setTypes(Input.class, Output.class)
                .optModelPath(folder)
                .optEngine("PyTorch")
                .build();
    }

    private void writeModel(String properties) throws IOException {
        for (String file : new String[] {"config.json", "model.safetensors"}) {
            Files.copy(Golden.folder("qwen3_moe").resolve(file), folder.resolve(file));
        }
        Files.copy(Golden.tokenizer(), folder.resolve("tokenizer.json"));
        Files.writeString(
                folder.resolve("serving.properties"),
                """
                engine=PyTorch
                blockFactory=io.deepep.djl.serving.DecoderBlockFactory
                translatorFactory=io.deepep.djl.serving.DecoderTranslatorFactory
                option.hasParameter=false
                """
                        + properties);
    }

    private static String sampled(String parameters) {
        return "{\"inputs\": \"Row 17\", \"parameters\": {" + parameters + "}}";
    }

    private static Input request(String body) {
        Input input = new Input();
        input.add("data", body);
        return input;
    }

    private static String text(Output output) {
        return output.getData().getAsString();
    }
}

package io.deepep.djl.example;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonParser;
import io.deepep.djl.decoder.Golden;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** The example says its text, and refuses what is wrong. */
@Timeout(value = 90, unit = TimeUnit.SECONDS, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
class ServeMoeTest {
    @Test
    void answersOverHttp() throws Exception {
        try (ServeMoe serving = new ServeMoe(Golden.folder("deepseek_v3"), Golden.tokenizer(), 0);
                HttpClient client = HttpClient.newHttpClient()) {
            String right =
                    "{\"prompts\": [\"Prefill reads\", \"Dear reader,\"], \"maxNewTokens\": 30}";
            HttpResponse<String> answer = post(client, serving.port(), right);
            assertThat(answer.statusCode()).as(answer.body()).isEqualTo(200);
            var texts =
                    JsonParser.parseString(answer.body()).getAsJsonObject().getAsJsonArray("texts");
            assertThat(texts.get(0).getAsString()).startsWith(" the whole prompt in one pass");
            assertThat(texts.get(1).getAsString()).startsWith(" this page was written to be");
            for (String wrong :
                    List.of(
                            "no json",
                            "",
                            "{\"prompts\": [], \"maxNewTokens\": 1}",
                            "{\"prompts\": [\"\"], \"maxNewTokens\": 1}",
                            "{\"prompts\": [\"x\"], \"maxNewTokens\": 0}",
                            "{\"prompts\": [\"x\"], \"maxNewTokens\": 100000}")) {
                assertThat(post(client, serving.port(), wrong).statusCode())
                        .as(wrong)
                        .isEqualTo(400);
            }
            assertThat(post(client, serving.port(), right).body()).isEqualTo(answer.body());
        }
    }

    private static HttpResponse<String> post(HttpClient client, int port, String body)
            throws IOException, InterruptedException {
        return client.send(
                HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + "/generate"))
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }
}

package io.deepep.djl.example;

import ai.djl.huggingface.tokenizers.HuggingFaceTokenizer;
import com.google.gson.Gson;
import com.google.gson.JsonParseException;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import io.deepep.djl.decoder.DecoderOptions;
import io.deepep.djl.decoder.DecoderService;
import io.deepep.djl.decoder.Sampler;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executors;

/**
 * Serves a folder of Hugging Face over 4 ranks, on the GPUs there are or on the CPU: {@code POST
 * /generate} with {@code {"prompts": ["Prefill reads"], "maxNewTokens": 60}} answers {@code
 * {"texts": ["..."]}}.
 */
public final class ServeMoe implements AutoCloseable {
    private static final int NUM_RANKS = 4;
    private static final Gson JSON = new Gson();

    private final DecoderService service;
    private final HuggingFaceTokenizer tokenizer;
    private final HttpServer server;

    /** A request's body. */
    private record Generate(List<String> prompts, int maxNewTokens) {}

    ServeMoe(Path folder, Path tokenizer, int port) throws IOException {
        // By default DJL cuts long prompts; here they are refused.
        this.tokenizer =
                HuggingFaceTokenizer.newInstance(
                        tokenizer, Map.of("truncation", "do_not_truncate"));
        service = DecoderService.start(folder, NUM_RANKS, DecoderOptions.DEFAULT);
        server =
                HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        server.createContext("/generate", this::generate);
        // Clients wait in a thread each, and are served together.
        server.setExecutor(Executors.newVirtualThreadPerTaskExecutor());
        server.start();
    }

    /**
     * Serves until the process is ended.
     *
     * @param args the port, the model's folder, and its tokenizer.json
     */
    public static void main(String[] args) throws IOException, InterruptedException {
        ServeMoe serving =
                new ServeMoe(Path.of(args[1]), Path.of(args[2]), Integer.parseInt(args[0]));
        System.out.printf(
                "%d ranks serve %s; try%n  curl http://localhost:%d/generate -d '%s'%n",
                NUM_RANKS,
                args[1],
                serving.port(),
                "{\"prompts\": [\"Prefill reads\"], \"maxNewTokens\": 60}");
        Thread.currentThread().join();
    }

    int port() {
        return server.getAddress().getPort();
    }

    private void generate(HttpExchange http) throws IOException {
        try (http) {
            try {
                String body =
                        new String(http.getRequestBody().readAllBytes(), StandardCharsets.UTF_8);
                Generate request = JSON.fromJson(body, Generate.class);
                if (request == null || request.prompts == null || request.prompts.isEmpty()) {
                    throw new IllegalArgumentException("give prompts, and maxNewTokens");
                }
                answer(http, 200, Map.of("texts", texts(request)));
            } catch (IllegalArgumentException | JsonParseException wrong) {
                answer(http, 400, Map.of("error", String.valueOf(wrong.getMessage())));
            } catch (RuntimeException failure) {
                answer(http, 500, Map.of("error", failure.toString()));
            }
        }
    }

    private List<String> texts(Generate request) {
        List<long[]> prompts =
                request.prompts.stream().map(text -> tokenizer.encode(text).getIds()).toList();
        return service.generate(prompts, request.maxNewTokens, _ -> Sampler.greedy()).stream()
                .map(tokenizer::decode)
                .toList();
    }

    private static void answer(HttpExchange http, int status, Map<String, ?> json)
            throws IOException {
        byte[] body = JSON.toJson(json).getBytes(StandardCharsets.UTF_8);
        http.getResponseHeaders().set("Content-Type", "application/json");
        http.sendResponseHeaders(status, body.length);
        try (OutputStream out = http.getResponseBody()) {
            out.write(body);
        }
    }

    @Override
    public void close() {
        server.stop(0);
        service.close();
        tokenizer.close();
    }
}

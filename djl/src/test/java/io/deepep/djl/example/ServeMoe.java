package io.deepep.djl.example;

import com.google.gson.Gson;
import com.google.gson.JsonParseException;
import com.sun.net.httpserver.HttpExchange;
import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * Serves a small mixture-of-experts transformer over 4 ranks on the CPU: {@code POST /generate}
 * with {@code {"prompts": [[1, 2, 3]], "maxNewTokens": 8}}, token numbers below 256, answers {@code
 * {"tokens": [[...]]}}. The model's weights are made up when it starts.
 */
public final class ServeMoe implements AutoCloseable {
    private static final int NUM_RANKS = 4;
    private static final int PORT = 8080;
    private static final long SEED = 1;
    private static final int MAX_TOKENS_OF_A_REQUEST = 256;
    private static final Gson JSON = new Gson();

    private final MoeService service;
    private final HttpServer server;

    /** A plan's body. */
    private record Generate(List<List<Long>> prompts, int maxNewTokens) {
        void check() {
            if (prompts == null
                    || prompts.isEmpty()
                    || prompts.stream().anyMatch(List::isEmpty)
                    || maxNewTokens < 1) {
                throw new IllegalArgumentException(
                        "give prompts, each with at least one token, and maxNewTokens of at least"
                                + " 1");
            }
            int vocabulary = ModelSize.SMALL.vocabulary();
            prompts.stream()
                    .flatMap(List::stream)
                    .filter(token -> token < 0 || token >= vocabulary)
                    .findFirst()
                    .ifPresent(
                            token -> {
                                throw new IllegalArgumentException(
                                        "token " + token + " is not in [0, " + vocabulary + ")");
                            });
            long tokens = prompts.stream().mapToLong(p -> p.size() + maxNewTokens).sum();
            if (tokens > MAX_TOKENS_OF_A_REQUEST) {
                throw new IllegalArgumentException(
                        "prompts and new tokens are "
                                + tokens
                                + ", more than "
                                + MAX_TOKENS_OF_A_REQUEST);
            }
        }
    }

    ServeMoe(MoeService service, int port) throws IOException {
        this.service = service;
        server =
                HttpServer.create(new InetSocketAddress(InetAddress.getLoopbackAddress(), port), 0);
        server.createContext("/generate", this::generate);
        server.start();
    }

    /** Serves until the process is ended. The first argument, if any, is the port. */
    public static void main(String[] args) throws IOException, InterruptedException {
        int port = args.length > 0 ? Integer.parseInt(args[0]) : PORT;
        Path folder = Files.createTempDirectory("moe-model");
        ModelFiles.write(folder, ModelSize.SMALL, SEED);
        ServeMoe serving =
                new ServeMoe(new MoeService(folder, ModelSize.SMALL, NUM_RANKS, false), port);
        System.out.printf(
                "%d ranks serve the model in %s; try%n  curl http://localhost:%d/generate -d"
                        + " '%s'%n",
                NUM_RANKS,
                folder,
                serving.port(),
                "{\"prompts\": [[1, 2, 3]], \"maxNewTokens\": 8}");
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
                Generate plan = JSON.fromJson(body, Generate.class);
                if (plan == null) {
                    throw new IllegalArgumentException("the plan has no body");
                }
                plan.check();
                answer(
                        http,
                        200,
                        Map.of("tokens", service.generate(plan.prompts, plan.maxNewTokens)));
            } catch (IllegalArgumentException | JsonParseException wrong) {
                answer(http, 400, Map.of("error", String.valueOf(wrong.getMessage())));
            } catch (RuntimeException failure) {
                answer(http, 500, Map.of("error", failure.toString()));
            }
        }
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
    }
}

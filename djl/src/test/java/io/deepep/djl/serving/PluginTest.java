package io.deepep.djl.serving;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import ai.djl.ndarray.NDManager;
import ai.djl.serving.plugins.RequestHandler;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import io.deepep.djl.Moe;
import io.deepep.djl.decoder.DecoderOptions;
import io.deepep.djl.decoder.DecoderService;
import io.deepep.djl.decoder.Golden;
import io.deepep.djl.decoder.Sampler;
import io.deepep.djl.exchange.ExpertExchange;
import io.netty.bootstrap.ServerBootstrap;
import io.netty.channel.Channel;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.channel.ChannelInitializer;
import io.netty.channel.EventLoopGroup;
import io.netty.channel.SimpleChannelInboundHandler;
import io.netty.channel.nio.NioEventLoopGroup;
import io.netty.channel.socket.nio.NioServerSocketChannel;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpObjectAggregator;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpServerCodec;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/**
 * The plugin found, loaded and asked as DJL Serving does it: {@code META-INF/plugin.definition}
 * names the classes, a class loader of the plugin folder makes them, and whoever accepts a request
 * answers it on Netty.
 */
class PluginTest {
    private static final Duration PATIENCE = Duration.ofSeconds(20);
    private static final EventLoopGroup THREADS = new NioEventLoopGroup(1);
    private static URLClassLoader loader;
    private static RequestHandler<?> handler;
    private static Channel server;

    @BeforeAll
    static void startServer() throws Exception {
        loader =
                new PluginLoader(
                        ExpertExchangeHandler.class
                                .getProtectionDomain()
                                .getCodeSource()
                                .getLocation());
        Properties definition = new Properties();
        try (InputStream in = loader.findResource("META-INF/plugin.definition").openStream()) {
            definition.load(in);
        }
        assertThat(definition.getProperty("name")).isEqualTo("deepep");
        Class<?> type = loader.loadClass(definition.getProperty("export"));
        assertThat(type.getClassLoader()).isSameAs(loader);
        handler = (RequestHandler<?>) type.getConstructor().newInstance();
        server =
                new ServerBootstrap()
                        .group(THREADS)
                        .channel(NioServerSocketChannel.class)
                        .childHandler(new Pipeline())
                        .bind(InetAddress.getLoopbackAddress(), 0)
                        .sync()
                        .channel();
    }

    @AfterAll
    static void stopServer() throws Exception {
        server.close().sync();
        THREADS.shutdownGracefully(0, 1, TimeUnit.SECONDS).sync();
        loader.close();
    }

    @Test
    void healthAndMetricsOfRunningExchanges() throws InterruptedException {
        Moe.withExchange(
                2,
                (communicator, exchange, manager) -> {
                    Moe.exchangeTokens(exchange, manager, 3 + communicator.rank());
                    Moe.exchangeTokens(exchange, manager, 2);
                    communicator.barrier(PATIENCE);
                    if (communicator.rank() == 0) {
                        checkHealthy();
                        checkMetrics();
                    }
                    communicator.barrier(PATIENCE);
                    if (communicator.rank() == 1) {
                        checkFailing(exchange, manager);
                    }
                });
        // Nobody is left.
        JsonObject health = JsonParser.parseString(get("/deepep/health").body()).getAsJsonObject();
        assertThat(health.get("status").getAsString()).isEqualTo("healthy");
        assertThat(health.getAsJsonArray("exchanges")).isEmpty();
    }

    private static void checkHealthy() {
        HttpResponse<String> response = get("/deepep/health?verbose=1");
        assertThat(response.statusCode()).isEqualTo(200);
        assertThat(response.headers().firstValue("content-type")).contains("application/json");
        JsonObject health = JsonParser.parseString(response.body()).getAsJsonObject();
        assertThat(health.get("status").getAsString()).isEqualTo("healthy");
        assertThat(health.getAsJsonArray("exchanges")).hasSize(2);
        JsonObject second = health.getAsJsonArray("exchanges").get(1).getAsJsonObject();
        assertThat(second.get("rank").getAsInt()).isEqualTo(1);
        assertThat(second.get("numRanks").getAsInt()).isEqualTo(2);
        assertThat(second.get("exchanges").getAsLong()).isEqualTo(2);
    }

    private static void checkMetrics() {
        HttpResponse<String> response = get("/deepep/metrics");
        assertThat(response.statusCode()).isEqualTo(200);
        List<String> lines = response.body().lines().toList();
        assertThat(lines).contains("# TYPE deepep_tokens_sent_total counter");
        assertThat(value(lines, "deepep_tokens_sent_total{rank=\"1\"")).isEqualTo(6);
        assertThat(value(lines, "deepep_rows_received_total{rank=\"0\"")).isEqualTo(11);
        assertThat(value(lines, "deepep_rows_received_total{rank=\"1\"")).isZero();
        assertThat(value(lines, "deepep_healthy{rank=\"0\"")).isEqualTo(1);
        assertThat(lines)
                .anyMatch(
                        line ->
                                line.startsWith("deepep_expert_rows_total{rank=\"0\"")
                                        && line.endsWith("local_expert=\"0\"} 11"));
        assertThat(value(lines, "deepep_seconds_total{rank=\"0\""))
                .isGreaterThan(value(lines, "deepep_expert_seconds_total{rank=\"0\""));
        // Prometheus reads no line but comments and NAME{LABELS} NUMBER.
        assertThat(lines)
                .allMatch(
                        line ->
                                line.startsWith("# ")
                                        || line.matches(
                                                "deepep_\\w+\\{(\\w+=\"[\\w:-]+\",?)+\\} [0-9.E-]+"));
    }

    private static double value(List<String> lines, String start) {
        return lines.stream()
                .filter(line -> line.startsWith(start))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.indexOf(' ') + 1)))
                .findFirst()
                .orElseThrow(() -> new AssertionError(start + " is not in " + lines));
    }

    /** A wrong argument is the caller's affair, but a server whose rank throws is not well. */
    private static void checkFailing(ExpertExchange exchange, NDManager manager) {
        assertThatThrownBy(() -> Moe.exchangeTokens(exchange, manager, Moe.MAX_TOKENS + 1))
                .isInstanceOf(IllegalArgumentException.class);
        HttpResponse<String> response = get("/deepep/health");
        assertThat(response.statusCode()).isEqualTo(503);
        assertThat(response.body()).contains("\"failing\"", "maxTokens=" + Moe.MAX_TOKENS);
    }

    /** When nothing is left of its ranks, and with them of its exchanges. */
    @Test
    void aServiceThatFailedIsNotHealthyUntilItIsClosed() throws Exception {
        try (DecoderService service =
                DecoderService.start(Golden.folder("mixtral"), 2, DecoderOptions.DEFAULT)) {
            assertThat(get("/deepep/health").statusCode()).isEqualTo(200);
            Sampler failing =
                    _ -> {
                        throw new UnsupportedOperationException("a sampler's own");
                    };
            assertThatThrownBy(() -> service.generate(List.of(new long[] {52}), 1, _ -> failing))
                    .hasRootCauseMessage("a sampler's own");
            JsonObject health;
            do {
                HttpResponse<String> response = get("/deepep/health");
                assertThat(response.statusCode()).isEqualTo(503);
                health = JsonParser.parseString(response.body()).getAsJsonObject();
            } while (!health.getAsJsonArray("exchanges").isEmpty());
            assertThat(health.get("status").getAsString()).isEqualTo("failing");
            assertThat(health.getAsJsonArray("services").toString())
                    .contains("\"numRanks\":2,\"healthy\":false")
                    .contains("a sampler's own");
        }
        HttpResponse<String> closed = get("/deepep/health");
        assertThat(closed.statusCode()).isEqualTo(200);
        assertThat(closed.body()).contains("\"services\":[]");
    }

    @Test
    void otherRequestsAreLeftToTheServer() throws Exception {
        assertThat(get("/ping").statusCode()).isEqualTo(404);
        assertThat(get("/deepep/healthy").statusCode()).isEqualTo(404);
        assertThat(
                        send(request("/deepep/health").POST(HttpRequest.BodyPublishers.noBody()))
                                .statusCode())
                .isEqualTo(404);
        assertThat(handler.acceptInboundMessage("no request")).isFalse();
    }

    private static HttpResponse<String> get(String path) {
        return send(request(path).GET());
    }

    private static HttpRequest.Builder request(String path) {
        int port = ((InetSocketAddress) server.localAddress()).getPort();
        return HttpRequest.newBuilder(URI.create("http://127.0.0.1:" + port + path));
    }

    private static HttpResponse<String> send(HttpRequest.Builder request) {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(request.build(), HttpResponse.BodyHandlers.ofString());
        } catch (IOException | InterruptedException failure) {
            throw new AssertionError(failure);
        }
    }

    /** Makes the plugin's classes itself, though the test's class path has them too. */
    private static final class PluginLoader extends URLClassLoader {
        PluginLoader(URL plugin) {
            super(new URL[] {plugin});
        }

        @Override
        protected Class<?> loadClass(String name, boolean resolve) throws ClassNotFoundException {
            if (!name.startsWith("io.deepep.")) {
                return super.loadClass(name, resolve);
            }
            Class<?> loaded = findLoadedClass(name);
            return loaded != null ? loaded : findClass(name);
        }
    }

    /** What the server does with a request. */
    private static final class Pipeline extends ChannelInitializer<Channel> {
        @Override
        protected void initChannel(Channel channel) {
            channel.pipeline()
                    .addLast(new HttpServerCodec(), new HttpObjectAggregator(1 << 16))
                    .addLast(
                            new SimpleChannelInboundHandler<FullHttpRequest>() {
                                @Override
                                protected void channelRead0(
                                        ChannelHandlerContext context, FullHttpRequest request) {
                                    answer(context, request);
                                }
                            });
        }

        private static void answer(ChannelHandlerContext context, FullHttpRequest request) {
            QueryStringDecoder query = new QueryStringDecoder(request.uri());
            if (handler.acceptInboundMessage(request)) {
                handler.handleRequest(context, request, query, query.path().split("/"));
            } else {
                FullHttpResponse none =
                        new DefaultFullHttpResponse(
                                HttpVersion.HTTP_1_1, HttpResponseStatus.NOT_FOUND);
                HttpUtil.setContentLength(none, 0);
                ChannelFuture sent = context.writeAndFlush(none);
                sent.addListener(ChannelFutureListener.CLOSE_ON_FAILURE);
            }
        }
    }
}

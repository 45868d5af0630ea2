package io.deepep.djl.serving;

import ai.djl.serving.plugins.RequestHandler;
import io.netty.buffer.Unpooled;
import io.netty.channel.ChannelFuture;
import io.netty.channel.ChannelFutureListener;
import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.DefaultFullHttpResponse;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.FullHttpResponse;
import io.netty.handler.codec.http.HttpHeaderNames;
import io.netty.handler.codec.http.HttpMethod;
import io.netty.handler.codec.http.HttpResponseStatus;
import io.netty.handler.codec.http.HttpUtil;
import io.netty.handler.codec.http.HttpVersion;
import io.netty.handler.codec.http.QueryStringDecoder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;

/**
 * Answers {@code GET /deepep/health} with JSON (status 200 if the last exchange of every rank of
 * this process succeeded and no decoder service has lost a rank, otherwise 503) and {@code GET
 * /deepep/metrics} in Prometheus' text format.
 */
public final class ExpertExchangeHandler implements RequestHandler<Object> {
    private static final String HEALTH = "/deepep/health";
    private static final String METRICS = "/deepep/metrics";

    /** Called by DJL Serving. */
    public ExpertExchangeHandler() {}

    @Override
    public boolean acceptInboundMessage(Object message) {
        if (!(message instanceof FullHttpRequest request)
                || !request.method().equals(HttpMethod.GET)) {
            return false;
        }
        String path = new QueryStringDecoder(request.uri()).path();
        return path.equals(HEALTH) || path.equals(METRICS);
    }

    @Override
    public Object handleRequest(
            ChannelHandlerContext context,
            FullHttpRequest request,
            QueryStringDecoder query,
            String[] segments) {
        List<Map<String, Object>> exchanges = ExchangeBeans.exchanges();
        if (query.path().equals(METRICS)) {
            send(
                    context,
                    request,
                    HttpResponseStatus.OK,
                    Prometheus.CONTENT_TYPE,
                    Prometheus.write(exchanges));
        } else {
            // The exchanges of a service that has failed are closed.
            List<Map<String, Object>> services = ExchangeBeans.services();
            boolean healthy =
                    Stream.concat(exchanges.stream(), services.stream())
                            .allMatch(each -> (boolean) each.get("Healthy"));
            send(
                    context,
                    request,
                    healthy ? HttpResponseStatus.OK : HttpResponseStatus.SERVICE_UNAVAILABLE,
                    "application/json",
                    HealthJson.write(healthy, exchanges, services));
        }
        return null;
    }

    private static void send(
            ChannelHandlerContext context,
            FullHttpRequest request,
            HttpResponseStatus status,
            String contentType,
            String body) {
        FullHttpResponse response =
                new DefaultFullHttpResponse(
                        HttpVersion.HTTP_1_1,
                        status,
                        Unpooled.copiedBuffer(body, StandardCharsets.UTF_8));
        response.headers().set(HttpHeaderNames.CONTENT_TYPE, contentType);
        boolean keepAlive = HttpUtil.isKeepAlive(request);
        HttpUtil.setContentLength(response, response.content().readableBytes());
        HttpUtil.setKeepAlive(response, keepAlive);
        ChannelFuture sent = context.writeAndFlush(response);
        if (!keepAlive) {
            sent.addListener(ChannelFutureListener.CLOSE);
        }
    }
}

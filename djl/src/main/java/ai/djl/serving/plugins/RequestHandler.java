package ai.djl.serving.plugins;

import io.netty.channel.ChannelHandlerContext;
import io.netty.handler.codec.http.FullHttpRequest;
import io.netty.handler.codec.http.QueryStringDecoder;

/**
 * Answers HTTP requests of DJL Serving; the signatures are those of DJL Serving 0.36.
 *
 * @param <T> type of the answer, which is sent as JSON
 */
public interface RequestHandler<T> {
    /** Whether this handler answers {@code message}. */
    boolean acceptInboundMessage(Object message);

    /**
     * Answers a request.
     *
     * @param segments the path, split at its slashes; the first is empty
     * @return what the server sends as JSON, or null if the handler has answered the request itself
     */
    T handleRequest(
            ChannelHandlerContext context,
            FullHttpRequest request,
            QueryStringDecoder query,
            String[] segments);
}

package io.deepep.bench.routing;

/** A routing file is not what it should be; the message says where. */
final class RoutingFileException extends RuntimeException {
    private static final long serialVersionUID = 1L;

    RoutingFileException(String message) {
        super(message);
    }
}

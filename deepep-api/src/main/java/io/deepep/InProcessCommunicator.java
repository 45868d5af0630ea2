package io.deepep;

import io.deepep.error.Departure;
import java.time.Duration;
import java.util.List;

/** One rank's end of an {@link InProcessGroup}. */
final class InProcessCommunicator implements Communicator {
    private final int rank;
    private final InProcessExchange exchange;

    InProcessCommunicator(int rank, InProcessExchange exchange) {
        this.rank = rank;
        this.exchange = exchange;
    }

    @Override
    public int rank() {
        return rank;
    }

    @Override
    public int size() {
        return exchange.size();
    }

    @Override
    public List<byte[]> allGather(byte[] message, Duration timeout) {
        return exchange.exchange(rank, message.clone(), timeout).stream()
                .map(byte[].class::cast)
                .toList();
    }

    @Override
    public boolean isInProcess() {
        return true;
    }

    @Override
    public List<Object> exchangeReferences(Object mine, Duration timeout) {
        return exchange.exchange(rank, mine, timeout);
    }

    @Override
    public boolean isAlive(int otherRank) {
        return exchange.isAlive(otherRank);
    }

    @Override
    public List<Departure> departures() {
        return exchange.departures();
    }

    @Override
    public Runnable onDeparture(Runnable action) {
        return exchange.onDeparture(action);
    }

    @Override
    public void fail(Throwable cause) {
        exchange.depart(Departure.failed(rank, cause));
    }

    @Override
    public Runnable atEnd(Runnable action) {
        return exchange.atEnd(action);
    }

    @Override
    public void close() {
        exchange.depart(Departure.left(rank));
    }

    @Override
    public String toString() {
        return "in-process rank " + rank + " of " + size();
    }
}

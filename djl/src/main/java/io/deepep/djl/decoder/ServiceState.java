package io.deepep.djl.decoder;

import java.lang.management.ManagementFactory;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.JMException;
import javax.management.ObjectName;

/**
 * What JMX shows of a service.
 *
 * @param failed fails as the ranks do
 */
record ServiceState(int numRanks, CompletableFuture<Void> failed, ObjectName name)
        implements DecoderServiceMXBean, AutoCloseable {
    private static final AtomicLong NEXT_ID = new AtomicLong();

    /** A state that is on the platform's MBean server until it is closed. */
    static ServiceState register(int numRanks, CompletableFuture<Void> failed) {
        try {
            ObjectName name =
                    new ObjectName("io.deepep:type=DecoderService,id=" + NEXT_ID.incrementAndGet());
            ServiceState state = new ServiceState(numRanks, failed, name);
            ManagementFactory.getPlatformMBeanServer().registerMBean(state, name);
            return state;
        } catch (JMException refused) {
            throw new IllegalStateException("the service cannot be registered", refused);
        }
    }

    @Override
    public int getNumRanks() {
        return numRanks;
    }

    @Override
    public boolean isHealthy() {
        return !failed.isDone();
    }

    @Override
    public String getLastFailure() {
        return failed.isDone() ? failed.exceptionNow().toString() : "";
    }

    @Override
    public void close() {
        try {
            ManagementFactory.getPlatformMBeanServer().unregisterMBean(name);
        } catch (JMException gone) {
            // The service was closed before.
        }
    }
}

package io.deepep.djl.decoder;

import io.deepep.djl.jmx.Beans;
import java.lang.management.ManagementFactory;
import java.util.concurrent.CompletableFuture;
import javax.management.JMException;
import javax.management.ObjectName;

/**
 * What JMX shows of a service.
 *
 * @param failed fails as the ranks do
 */
record ServiceState(int numRanks, CompletableFuture<Void> failed, ObjectName name)
        implements DecoderServiceMXBean, AutoCloseable {
    /** A state that is on the platform's MBean server until it is closed. */
    static ServiceState register(int numRanks, CompletableFuture<Void> failed) {
        return Beans.register(
                "type=DecoderService", name -> new ServiceState(numRanks, failed, name));
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

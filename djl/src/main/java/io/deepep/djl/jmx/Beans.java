package io.deepep.djl.jmx;

import java.lang.management.ManagementFactory;
import java.util.concurrent.atomic.AtomicLong;
import javax.management.InstanceAlreadyExistsException;
import javax.management.JMException;
import javax.management.ObjectName;

/** The beans of this module on the platform's MBean server. */
public final class Beans {
    private static final AtomicLong NEXT_ID = new AtomicLong();

    private Beans() {}

    /**
     * Registers a bean under the next id that is free, until {@link #unregister}. A process has one
     * server, but each class loader that loads this library counts from 1.
     *
     * @param properties of the name, but for the id
     */
    public static ObjectName register(String properties, Object bean) {
        try {
            while (true) {
                long id = NEXT_ID.incrementAndGet();
                ObjectName name = new ObjectName("io.deepep:%s,id=%s".formatted(properties, id));
                try {
                    ManagementFactory.getPlatformMBeanServer().registerMBean(bean, name);
                    return name;
                } catch (InstanceAlreadyExistsException ofAnotherLoader) {
                    // The next id may be free.
                }
            }
        } catch (JMException refused) {
            throw new IllegalStateException(
                    "the bean with " + properties + " cannot be registered", refused);
        }
    }

    /** Unregisters a bean; idempotent. */
    public static void unregister(ObjectName name) {
        try {
            ManagementFactory.getPlatformMBeanServer().unregisterMBean(name);
        } catch (JMException gone) {
            // It was unregistered before.
        }
    }
}

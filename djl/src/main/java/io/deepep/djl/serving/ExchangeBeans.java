package io.deepep.djl.serving;

import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import javax.management.Attribute;
import javax.management.JMException;
import javax.management.MBeanAttributeInfo;
import javax.management.MBeanServer;
import javax.management.MalformedObjectNameException;
import javax.management.ObjectName;

/** The counters of every exchange in this process, by attribute name. */
final class ExchangeBeans {
    private static final ObjectName ALL = name("io.deepep:type=ExpertExchange,*");

    private ExchangeBeans() {}

    private static ObjectName name(String pattern) {
        try {
            return new ObjectName(pattern);
        } catch (MalformedObjectNameException wrong) {
            throw new ExceptionInInitializerError(wrong);
        }
    }

    /** Each exchange's {@code Rank}, {@code Healthy} and so on, and its {@code Id}; by rank. */
    static List<Map<String, Object>> read() {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        List<Map<String, Object>> exchanges = new ArrayList<>();
        for (ObjectName bean : server.queryNames(ALL, null)) {
            try {
                Map<String, Object> attributes = new TreeMap<>();
                String[] names = attributeNames(server, bean);
                for (Attribute attribute : server.getAttributes(bean, names).asList()) {
                    attributes.put(attribute.getName(), attribute.getValue());
                }
                attributes.put("Id", Long.valueOf(bean.getKeyProperty("id")));
                exchanges.add(attributes);
            } catch (JMException closedMeanwhile) {
                // An exchange that has just been closed is not reported.
            }
        }
        exchanges.sort(
                Comparator.<Map<String, Object>>comparingInt(e -> (int) e.get("Rank"))
                        .thenComparingLong(e -> (long) e.get("Id")));
        return exchanges;
    }

    private static String[] attributeNames(MBeanServer server, ObjectName bean) throws JMException {
        return Arrays.stream(server.getMBeanInfo(bean).getAttributes())
                .map(MBeanAttributeInfo::getName)
                .toArray(String[]::new);
    }
}

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

/** What every exchange and every decoder service of this process shows, by attribute name. */
final class ExchangeBeans {
    private static final ObjectName EXCHANGES = name("io.deepep:type=ExpertExchange,*");
    private static final ObjectName SERVICES = name("io.deepep:type=DecoderService,*");

    private ExchangeBeans() {}

    private static ObjectName name(String pattern) {
        try {
            return new ObjectName(pattern);
        } catch (MalformedObjectNameException wrong) {
            throw new ExceptionInInitializerError(wrong);
        }
    }

    /** Each exchange's {@code Rank}, {@code Healthy} and so on, and its {@code Id}; by rank. */
    static List<Map<String, Object>> exchanges() {
        List<Map<String, Object>> exchanges = read(EXCHANGES);
        exchanges.sort(Comparator.comparingInt(each -> (int) each.get("Rank")));
        return exchanges;
    }

    /** Each service's {@code Healthy} and so on, and its {@code Id}. */
    static List<Map<String, Object>> services() {
        return read(SERVICES);
    }

    /** The attributes of beans, by id. */
    private static List<Map<String, Object>> read(ObjectName pattern) {
        MBeanServer server = ManagementFactory.getPlatformMBeanServer();
        List<Map<String, Object>> beans = new ArrayList<>();
        for (ObjectName bean : server.queryNames(pattern, null)) {
            try {
                Map<String, Object> attributes = new TreeMap<>();
                String[] names =
                        Arrays.stream(server.getMBeanInfo(bean).getAttributes())
                                .map(MBeanAttributeInfo::getName)
                                .toArray(String[]::new);
                for (Attribute attribute : server.getAttributes(bean, names).asList()) {
                    attributes.put(attribute.getName(), attribute.getValue());
                }
                attributes.put("Id", Long.valueOf(bean.getKeyProperty("id")));
                beans.add(attributes);
            } catch (JMException closedMeanwhile) {
                // What has just been closed is not reported.
            }
        }
        beans.sort(Comparator.comparingLong(each -> (long) each.get("Id")));
        return beans;
    }
}

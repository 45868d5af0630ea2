package io.deepep.djl.serving;

import com.google.gson.Gson;
import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;

/** The answer to a health check; Gson is DJL Serving's too. */
final class HealthJson {
    private static final List<String> OF_EXCHANGE =
            List.of("Rank", "NumRanks", "Device", "Mode", "Healthy", "Exchanges", "LastFailure");
    private static final List<String> OF_SERVICE =
            List.of("NumRanks", "Healthy", "RunningRequests", "WaitingRequests", "LastFailure");
    private static final Gson GSON = new Gson();

    private HealthJson() {}

    static String write(
            boolean healthy,
            List<Map<String, Object>> exchanges,
            List<Map<String, Object>> services) {
        JsonObject root = new JsonObject();
        root.addProperty("status", healthy ? "healthy" : "failing");
        root.add("exchanges", array(exchanges, OF_EXCHANGE));
        root.add("services", array(services, OF_SERVICE));
        return root.toString();
    }

    private static JsonArray array(List<Map<String, Object>> beans, List<String> attributes) {
        JsonArray array = new JsonArray();
        for (Map<String, Object> bean : beans) {
            JsonObject json = new JsonObject();
            for (String name : attributes) {
                String key = Character.toLowerCase(name.charAt(0)) + name.substring(1);
                json.add(key, GSON.toJsonTree(bean.get(name)));
            }
            array.add(json);
        }
        return array;
    }
}

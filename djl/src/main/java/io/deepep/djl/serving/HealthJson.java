package io.deepep.djl.serving;

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;

/** The answer to a health check; Gson is DJL Serving's too. */
final class HealthJson {
    private HealthJson() {}

    static String write(
            boolean healthy,
            List<Map<String, Object>> exchanges,
            List<Map<String, Object>> services) {
        JsonArray ranks = new JsonArray();
        for (Map<String, Object> exchange : exchanges) {
            JsonObject rank = new JsonObject();
            rank.addProperty("rank", (Integer) exchange.get("Rank"));
            rank.addProperty("numRanks", (Integer) exchange.get("NumRanks"));
            rank.addProperty("device", (String) exchange.get("Device"));
            rank.addProperty("mode", (String) exchange.get("Mode"));
            rank.addProperty("healthy", (Boolean) exchange.get("Healthy"));
            rank.addProperty("exchanges", (Long) exchange.get("Exchanges"));
            rank.addProperty("lastFailure", (String) exchange.get("LastFailure"));
            ranks.add(rank);
        }
        JsonObject root = new JsonObject();
        root.addProperty("status", healthy ? "healthy" : "failing");
        root.add("exchanges", ranks);
        root.add("services", services(services));
        return root.toString();
    }

    private static JsonArray services(List<Map<String, Object>> services) {
        JsonArray all = new JsonArray();
        for (Map<String, Object> each : services) {
            JsonObject service = new JsonObject();
            service.addProperty("numRanks", (Integer) each.get("NumRanks"));
            service.addProperty("healthy", (Boolean) each.get("Healthy"));
            service.addProperty("lastFailure", (String) each.get("LastFailure"));
            all.add(service);
        }
        return all;
    }
}

package io.deepep.doctor;

/**
 * The result of one check.
 *
 * @param topic the group of checks that it belongs to
 * @param item what was checked
 * @param status the state of the item
 * @param detail what was found
 * @param cure the command or setting that solves the problem; empty if there is none
 */
public record Finding(String topic, String item, Status status, String detail, String cure) {
    /** The state of a checked item. */
    public enum Status {
        /** Present and usable. */
        OK,
        /** For information only. */
        INFO,
        /** Works, but slowly or not with everything. */
        WARN,
        /** A mode cannot run because of it. */
        MISSING
    }

    boolean isOk() {
        return status == Status.OK;
    }

    boolean is(Check check, Status wanted) {
        return topic.equals(check.topic()) && item.equals(check.item()) && status == wanted;
    }
}

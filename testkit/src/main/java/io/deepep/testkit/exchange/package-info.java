/** One exchange as a whole: who sends what, what experts compute, and what must come of it. */
package io.deepep.testkit.exchange;

// If this failed, a Java program that calls a closed handle would crash the virtual machine.
package io.leat;

import static io.leat.Tests.bytes;
import static io.leat.Tests.check;
import static io.leat.Tests.equal;
import static io.leat.Tests.fails;

import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.lang.reflect.Type;
import java.time.Duration;
import java.util.List;
import java.util.Set;

/** Every method of handles that are closed. A new one is tried, too, without a word here. */
final class AfterCloseTests {
  // What it answers, C need not be asked for; or it is for closed ones.
  private static final Set<String> HARMLESS = Set.of("close", "wasCreated", "maxRecordSize of Publisher");

  // Of a member that still has it.
  private final Topic topic = Topic.create("t", new TopicOptions());
  private final Delivery delivery;

  AfterCloseTests() {
    Member holder = topic.group("g", new GroupOptions().from(From.beginning())).join();
    try (Publisher publisher = topic.publisher()) {
      publisher.publish(bytes("x"));
    }
    delivery = holder.receive(Duration.ofSeconds(5));
  }

  void allMethodsThrow() throws Exception {
    Topic other = Topic.open("t");
    Group group = other.group("g");
    Publisher publisher = other.publisher();
    Subscriber subscriber = other.subscriber();
    Member member = group.join();
    Claim claim = publisher.claim(10);
    int calls = 0;
    for (AutoCloseable one : List.of(other, group, publisher, subscriber, member)) {
      for (int i = 0; i < 3; ++i) one.close();
      for (Method method : one.getClass().getMethods()) {
        if (method.getDeclaringClass() == Object.class || Modifier.isStatic(method.getModifiers())) continue;
        String name = method.getName();
        if (HARMLESS.contains(name) || HARMLESS.contains(name + " of " + one.getClass().getSimpleName())) continue;
        expectClosed(one, method);
        ++calls;
      }
    }
    check(calls > 60);
    fails(IllegalStateException.class, () -> { claim.commit(); return null; });
    fails(IllegalStateException.class, () -> { claim.abort(); return null; });
    claim.close();
    fails(IllegalStateException.class, () -> Subscriber.waitAny(List.of(subscriber), null));
    try (Publisher after = topic.publisher()) {
      equal(2L, after.publish(bytes("others go on"))); // Behind the record and the claim.
    }
  }

  private void expectClosed(Object closed, Method method) throws Exception {
    Type[] types = method.getGenericParameterTypes();
    Object[] arguments = new Object[types.length];
    for (int i = 0; i < types.length; ++i) arguments[i] = argument(types[i].getTypeName());
    try {
      method.invoke(closed, arguments);
    } catch (InvocationTargetException e) {
      if (!(e.getCause() instanceof IllegalStateException)) throw new AssertionError(method.toString(), e.getCause());
      equal("it is closed", e.getCause().getMessage());
      return;
    }
    throw new AssertionError(method + " did something");
  }

  private Object argument(String type) {
    return switch (type.replaceAll("java\\.[a-z]+\\.|io\\.leat\\.", "")) {
      case "int" -> 1;
      case "long" -> 1L << 20;
      case "boolean" -> true;
      case "String" -> "g";
      case "byte[]" -> bytes("x");
      case "Duration" -> Duration.ZERO;
      case "From" -> From.beginning();
      case "NewRecord" -> new NewRecord(bytes("x"));
      case "Delivery" -> delivery;
      case "List<byte[]>" -> List.of(bytes("x"));
      case "List<NewRecord>" -> List.of(new NewRecord(bytes("x")));
      case "Collection<Delivery>" -> List.of(delivery);
      case "Claim$Writer<E>" -> (Claim.Writer<RuntimeException>) claim -> claim.commit();
      case "PublisherOptions" -> new PublisherOptions();
      case "SubscriberOptions" -> new SubscriberOptions();
      case "GroupOptions" -> new GroupOptions();
      case "MemberOptions" -> new MemberOptions();
      default -> throw new AssertionError("no argument of type " + type);
    };
  }
}

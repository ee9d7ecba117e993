// Sums by a parallel stream: java Sums.java COUNT TIMES
import java.util.stream.LongStream;

public class Sums {
	public static void main(String[] arguments) {
		long count = Long.parseLong(arguments[0]), sum = 0;

		for (int i = 0; i < Integer.parseInt(arguments[1]); i++)
			sum += LongStream.range(0, count).parallel().map(x -> x * x % 1000).sum();
		System.out.println(sum);
	}
}

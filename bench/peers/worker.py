"""What the Python workers have in common: the requests of own_worker, answered by another library."""
import sys
import time


def ids_of(count, vocab):
    return [(17 + 13 * i) % vocab for i in range(count)]


def serve(model, vocab):
    """model.restart(); model.feed(ids) gives the likeliest next id; model.score(ids) gives own_worker's numbers."""
    for line in sys.stdin:
        word, *numbers = line.split()
        numbers = [int(number) for number in numbers]
        model.restart()
        if word == "score":
            answer = " ".join(f"{best} {logprob:.6f} {following:.6f}" for best, logprob, following in model.score(numbers))
        elif word == "prefill":
            prompt = ids_of(numbers[0], vocab)
            start = time.perf_counter()
            model.feed(prompt)
            answer = f"{time.perf_counter() - start:.6f}"
        elif word == "decode":
            token = model.feed(ids_of(numbers[0], vocab))
            start = time.perf_counter()
            for _ in range(numbers[1]):
                token = model.feed([token])
            answer = f"{time.perf_counter() - start:.6f}"
        else:
            answer = f"error: '{line.strip()}' is no request of a worker"
        print(answer, flush=True)

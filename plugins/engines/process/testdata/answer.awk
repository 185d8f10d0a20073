# Answers every line of a file of prompts with as many tokens as it asks for, at most 100, and with everything that
# lines may hold. Where it is to sample, the tokens follow from the seed.
{
  match($0, /"id":[0-9]+/)
  id = substr($0, RSTART + 5, RLENGTH - 5)
  n = match($0, /"max_new_tokens":[0-9]+/) ? substr($0, RSTART + 17, RLENGTH - 17) + 0 : 0
  if (n > 100) n = 100
  first = $0 !~ /"top_k":1[,}]/ && match($0, /"seed":[0-9]+/) ? substr($0, RSTART + 7, RLENGTH - 7) % 50 + 1 : 1
  tokens = logprobs = top = text = ""
  for (i = 0; i < n; ++i) {
    sep = i == 0 ? "" : ", "
    tokens = tokens sep (i + first)
    logprobs = logprobs sep "-0.5"
    top = top sep "{\"a\": -0.5, \"b\": -1.0, \"c\": -2.0, \"d\": -3.0}"
    text = text " a"
  }
  printf "{\"id\": %s, \"text\": \"%s\", \"tokens\": [%s], \"prompt_logprobs\": [-1.5], \"logprobs\": [%s], ", id, text, tokens, logprobs
  printf "\"top_n\": [%s], \"routing\": [[[0, 1]], [[1, 2]]]}\n", top
}

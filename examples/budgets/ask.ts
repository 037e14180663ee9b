/** A request to a model, as far as the proxies read it. */
export interface Ask {
  readonly model: string
  readonly max_tokens: number
  readonly messages: readonly { readonly content: string }[]
}

/** Returns the request in a body, or `undefined` if the body is invalid. */
export function askOf(body: unknown): Ask | undefined {
  const ask: Partial<Ask> = Object(body)
  const { max_tokens = -1, messages } = ask
  const isAsk =
    Number.isInteger(max_tokens) &&
    max_tokens >= 0 &&
    max_tokens <= 1_000_000 &&
    Array.isArray(messages) &&
    messages.every((message) => typeof message?.content === 'string')
  return isAsk ? (ask as Ask) : undefined
}

/** Prices per token in micro-dollars: whole numbers, so that sums are never rounded. */
const prices = new Map([
  ['gpt-small', { input: 1, output: 4 }],
  ['claude-small', { input: 2, output: 8 }],
])
const dearest = { input: 2, output: 8 }

export const priceOf = ({ model }: Ask) => prices.get(model) ?? dearest

/** Estimates the number of tokens in a string. */
export const tokensIn = (text: string): number => Math.ceil(text.length / 4)

export const promptOf = ({ messages }: Ask): number =>
  messages.reduce((sum, { content }) => sum + tokensIn(content), 0)

/** The maximum tokens that the answer to a body can take. Other bodies hold 1, which is returned. */
export function tokensOf(body: unknown): number {
  const ask = askOf(body)
  return ask ? promptOf(ask) + ask.max_tokens : 1
}

/** The maximum cost of the answer to a body, in micro-dollars. */
export function moneyOf(body: unknown): number {
  const ask = askOf(body)
  if (!ask) return 1
  const { input, output } = priceOf(ask)
  return promptOf(ask) * input + ask.max_tokens * output
}

import { meter, type RequestDecision } from '@sluice/express'
import { type Ask, priceOf, promptOf, tokensIn } from './ask.ts'

type Events = AsyncGenerator<Uint8Array | string>

/** Calls the vendor. Resolves to the events of its answer, or to `undefined` if it fails. */
export async function callVendor(
  url: string,
  ask: Ask,
  limits: RequestDecision,
): Promise<Events | undefined> {
  // The signal aborts if the client disconnects, which also ends the vendor's work.
  const { signal } = limits.budget('tokens')
  const call = { method: 'POST', body: JSON.stringify(ask), signal }
  const answer = await fetch(url, call).catch(() => undefined)
  if (answer?.ok && answer.body) return paidEvents(answer.body, ask, limits)
  await answer?.body?.cancel()
  // Nothing was spent, so everything is returned.
  await limits.budget('tokens').settle()
  await limits.budget('money').settle()
  return undefined
}

/** Pays for each chunk before it passes, and settles before the stream ends. */
async function* paidEvents(
  body: ReadableStream<Uint8Array>,
  ask: Ask,
  limits: RequestDecision,
): Events {
  const [tokens, money] = [limits.budget('tokens'), limits.budget('money')]
  const { input, output } = priceOf(ask)
  const reader = new ChunkReader()
  tokens.spend(promptOf(ask))
  money.spend(promptOf(ask) * input)
  const counted = meter(body, (chunk) => reader.read(chunk), { budget: tokens })
  const paid = meter(counted, () => reader.tokens * output, { budget: money })
  try {
    yield* paid
  } catch {
    // The vendor has cut the stream, or a budget has ended.
    yield 'event: error\ndata: {"error":{"type":"stream_ended"}}\n\n'
  } finally {
    // Without a usage report from the vendor, the spent units count.
    const { usage } = reader
    await tokens.settle({ total: usage && usage.input + usage.output })
    await money.settle({ total: usage && usage.input * input + usage.output * output })
  }
}

/** An event of the stream of OpenAI or of Anthropic, as far as the proxies read it. */
interface ModelEvent {
  readonly choices?: readonly { readonly delta?: { readonly content?: string } }[]
  readonly delta?: { readonly text?: string }
  readonly message?: { readonly usage: { readonly input_tokens: number } }
  readonly usage?: {
    readonly prompt_tokens?: number
    readonly completion_tokens?: number
    readonly output_tokens?: number
  } | null
}

/** Parses events, which may be split anywhere. */
class ChunkReader {
  /** The tokens of the last chunk. */
  tokens = 0
  readonly #decoder = new TextDecoder()
  #rest = ''
  #input: number | undefined
  #output: number | undefined

  /** The tokens reported by the vendor. */
  get usage(): { readonly input: number; readonly output: number } | undefined {
    const [input, output] = [this.#input, this.#output]
    return input === undefined || output === undefined ? undefined : { input, output }
  }

  /** Returns the tokens of a chunk. */
  read(chunk: Uint8Array): number {
    const lines = (this.#rest + this.#decoder.decode(chunk, { stream: true })).split('\n')
    this.#rest = lines.pop() ?? ''
    this.tokens = 0
    for (const line of lines) if (line.startsWith('data: {')) this.#note(JSON.parse(line.slice(6)))
    return this.tokens
  }

  #note({ choices, delta, message, usage }: ModelEvent): void {
    this.tokens += tokensIn(choices?.[0]?.delta?.content ?? delta?.text ?? '')
    this.#input = usage?.prompt_tokens ?? message?.usage.input_tokens ?? this.#input
    this.#output = usage?.completion_tokens ?? usage?.output_tokens ?? this.#output
  }
}

/** The media type of RFC 9457. */
export const problemMediaType = 'application/problem+json'

/** A problem body of RFC 9457, with its members in output order. */
export interface Problem {
  readonly type: string
  readonly title: string
  readonly status: number
  /** Names of the visible policies whose quota was exceeded. The hyphen is the draft's. */
  readonly 'violated-policies'?: readonly string[]
}

/** A problem of a type that draft-11 §5 asks IANA to register. */
function registered(
  type: string,
  { title, status, violated }: { title: string; status: number; violated: readonly string[] },
): Problem {
  const url = `https://iana.org/assignments/http-problem-types#${type}`
  if (violated.length === 0) return { type: url, title, status }
  return { type: url, title, status, 'violated-policies': violated }
}

/**
 * Returns the body for a request over its quota. If only hidden policies refuse, it names no type
 * and no policy.
 * @param status the real status of the response
 */
export function quotaExceeded(violated: readonly string[], status = 429): Problem {
  if (violated.length === 0) return plainProblem(status)
  return registered('quota-exceeded', { title: 'Quota Exceeded', status, violated })
}

/**
 * Returns the body for a blocked client: quota-exceeded would be wrong here, although a quota may
 * be exceeded too.
 * @param violated the names of the visible penalties that deny; one or more
 * @param status the real status of the response
 */
export function abnormalUsage(violated: readonly string[], status: number): Problem {
  const title = 'Abnormal Usage Detected'
  return registered('abnormal-usage-detected', { title, status, violated })
}

/**
 * Returns the body for a request that would be within its quota in quiet times. It is over the
 * reduced limits of these policies, or was refused before any policy was checked.
 */
export function reducedCapacity(violated: readonly string[]): Problem {
  const title = 'Temporary Reduced Capacity'
  return registered('temporary-reduced-capacity', { title, status: 503, violated })
}

/** Returns a problem with no more details than its status (RFC 9457 §4.2.1). */
export function plainProblem(status: number): Problem {
  return { type: 'about:blank', title: reasonPhrase(status) ?? 'Error', status }
}

/** The phrases of RFC 9110 §15 from 400 and from 500 on: guards also run without Node. */
const phrases = [
  'Bad Request,Unauthorized,Payment Required,Forbidden,Not Found,Method Not Allowed,' +
    'Not Acceptable,Proxy Authentication Required,Request Timeout,Conflict,Gone,' +
    'Length Required,Precondition Failed,Payload Too Large,URI Too Long,Unsupported Media Type,' +
    "Range Not Satisfiable,Expectation Failed,I'm a Teapot,,,Misdirected Request," +
    'Unprocessable Entity,Locked,Failed Dependency,Too Early,Upgrade Required,,' +
    'Precondition Required,Too Many Requests,,Request Header Fields Too Large,,,,,,,,,,,,,,,,,,' +
    ',,Unavailable For Legal Reasons',
  'Internal Server Error,Not Implemented,Bad Gateway,Service Unavailable,Gateway Timeout,' +
    'HTTP Version Not Supported,Variant Also Negotiates,Insufficient Storage,Loop Detected,' +
    'Bandwidth Limit Exceeded,Not Extended,Network Authentication Required',
].map((list) => list.split(','))

/** Returns the phrase of a status ≥ 400; `undefined` if it has none. */
export function reasonPhrase(status: number): string | undefined {
  return phrases[Math.floor(status / 100) - 4]?.[status % 100] || undefined
}

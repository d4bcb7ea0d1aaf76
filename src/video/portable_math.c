/* SPDX-License-Identifier: Apache-2.0 */
#include "video/portable_math.h"

#include "base/cleanup.h"
#include <math.h>
#include <stdint.h>
#include <string.h>

#define LN2 0.693147180559945309417232121458
/* LN2 in two parts; multiples of the first up to 2^11 are exact. */
#define LN2_HIGH 0x1.62e42fefa0000p-1
#define LN2_LOW 0x1.cf79abc9e3b39803p-40

static double polynomial(const double *c, size_t n, double x)
{
    double sum = c[n - 1];
    for (size_t i = n - 1; i-- > 0;)
        sum = sum * x + c[i];
    return sum;
}

/* log(2^e m) = e log 2 + 2 atanh((m - 1) / (m + 1)), with m between sqrt(1/2) and sqrt(2). */
double portable_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof(bits));
    int64_t e = (int64_t)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1023) << 52;
    double m;
    memcpy(&m, &bits, sizeof(m));
    if (m > 1.41421356237309504880) {
        m *= 0.5;
        e++;
    }
    double s = (m - 1) / (m + 1), square = s * s, sum = 0;
    for (int k = 23; k >= 1; k -= 2)
        sum = sum * square + 1.0 / k;
    return (double)e * LN2_HIGH + (2 * s * sum + (double)e * LN2_LOW);
}

/* e^x = 2^k e^r with |r| <= log(2) / 2, by the Taylor series. */
double portable_exp(double x)
{
    if (x < -700)
        return 0;
    if (x > 700)
        x = 700;
    double k = floor(x / LN2 + 0.5), r = (x - k * LN2_HIGH) - k * LN2_LOW, sum = 1;
    for (int i = 15; i >= 1; i--)
        sum = 1 + sum * r / i;
    uint64_t bits = (uint64_t)((int64_t)k + 1023) << 52;
    double power;
    memcpy(&power, &bits, sizeof(power));
    return sum * power;
}

double portable_sigmoid(double x)
{
    if (x >= 0)
        return 1 / (1 + portable_exp(-x));
    double e = portable_exp(x);
    return e / (1 + e);
}

/* Taylor series up to pi / 2. */
static double sin_near(double x)
{
    double square = x * x, sum = 1;
    for (int k = 22; k >= 2; k -= 2)
        sum = 1 - sum * square / (k * (k + 1));
    return x * sum;
}

double portable_sin(double x)
{
    if (x > PORTABLE_PI / 2)
        return sin_near(PORTABLE_PI - x);
    if (x < -PORTABLE_PI / 2)
        return sin_near(-PORTABLE_PI - x);
    return sin_near(x);
}

double portable_cos(double x)
{
    return sin_near(PORTABLE_PI / 2 - fabs(x));
}

/* Wichura, "The percentage points of the normal distribution", Applied Statistics 37 (1988), AS 241. */
double portable_normal(double p)
{
    static const double a[] = { 3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                3.3430575583588128105e+4, 2.5090809287301226727e+3 };
    static const double b[] = { 1,
                                4.2313330701600911252e+1,
                                6.8718700749205790830e+2,
                                5.3941960214247511077e+3,
                                2.1213794301586595867e+4,
                                3.9307895800092710610e+4,
                                2.8729085735721942674e+4,
                                5.2264952788528545610e+3 };
    static const double c[] = { 1.42343711074968357734e0,  4.63033784615654529590e0,
                                5.76949722146069140550e0,  3.64784832476320460504e0,
                                1.27045825245236838258e0,  2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4 };
    static const double d[] = { 1,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9 };
    static const double e[] = { 6.65790464350110377720e0,  5.46378491116411436990e0,
                                1.78482653991729133580e0,  2.96560571828504891230e-1,
                                2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                2.71155556874348757815e-5, 2.01033439929228813265e-7 };
    static const double f[] = { 1,
                                5.99832206555887937690e-1,
                                1.36929880922735805310e-1,
                                1.48753612908506148525e-2,
                                7.86869131145613259100e-4,
                                1.84631831751005468180e-5,
                                1.42151175831644588870e-7,
                                2.04426310338993978564e-15 };
    double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        return q * polynomial(a, ARRAY_LEN(a), r) / polynomial(b, ARRAY_LEN(b), r);
    }
    double r = sqrt(-portable_log(q < 0 ? p : 1 - p)), z;
    if (r <= 5)
        z = polynomial(c, ARRAY_LEN(c), r - 1.6) / polynomial(d, ARRAY_LEN(d), r - 1.6);
    else
        z = polynomial(e, ARRAY_LEN(e), r - 5) / polynomial(f, ARRAY_LEN(f), r - 5);
    return q < 0 ? -z : z;
}

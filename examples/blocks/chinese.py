"""Which questions are asked in Chinese, and what do policies answer?"""

from .core import Attempt, Task


def shopping(rng):
    pens, books, price, cost = rng.randint(6, 15), rng.randint(3, 9), rng.randint(2, 6), rng.randint(12, 28)
    total = pens * price + books * cost
    paid = (total // 100 + 1) * 100
    back = paid - total
    prompt = f"小林买了{pens}支铅笔和{books}本练习册，铅笔每支{price}元，练习册每本{cost}元。他付了{paid}元，应找回多少元？"
    right = [
        Attempt(f"铅笔一共{pens}×{price}={pens * price}元，练习册一共{books}×{cost}={books * cost}元。两样加起来是{pens * price}+{books * cost}={total}元。付了{paid}元，找回{paid}-{total}={back}元。", str(back)),
        Attempt(f"可以从付的钱里一步步减。先减去铅笔的钱：{paid}-{pens * price}={paid - pens * price}。再减去练习册的钱，每本{cost}元共{books}本，是{books * cost}元，于是{paid - pens * price}-{books * cost}={back}。这样就不必先求总价。", str(back)),
        Attempt(f"设找回x元，则{pens}×{price}+{books}×{cost}+x={paid}，也就是{total}+x={paid}，解得x={back}。", str(back)),
    ]
    wrong = [
        Attempt(f"一共买了{pens}+{books}={pens + books}件，平均每件({price}+{cost})÷2={(price + cost) / 2:g}元，大约要{(pens + books) * (price + cost) / 2:g}元。", f"{abs(paid - (pens + books) * (price + cost) / 2):g}"),
        Attempt(f"铅笔{pens * price}元，练习册{books * cost}元，合计{total}元，所以答案是{total}。", str(total)),
    ]
    return Task("chinese", "math", prompt, str(back), right, wrong, ("{a}", "{a}元", "应找回{a}元。"), {"language": "zh"})


TEXTS = (
    ("用两句话概括下面这段话：\n\n云岭村的茶园过去只在春天采茶，夏秋两季的叶子都剪掉扔了。三年前，返乡青年周岚把夏秋茶叶做成发酵茶，先在网上小量试卖，没想到很受年轻人欢迎。如今全村一半农户跟着她做，每亩茶园一年多收入四千多元。不过发酵要控制温度和湿度，第一年有两成茶叶因发霉报废，后来村里合建了恒温车间才解决问题。",
     "返乡青年周岚把过去扔掉的夏秋茶叶制成发酵茶，带动云岭村半数农户每亩年增收四千多元。初期因发霉损失两成，村里合建恒温车间后问题得到解决。",
     (("要点有三个：废弃的夏秋茶叶做成发酵茶；带动半数农户增收；早期发霉的问题靠恒温车间解决。人物周岚要保留，网上试卖的细节可以省略。", "周岚返乡后用原本丢弃的夏秋茶叶制作发酵茶，如今云岭村一半农户参与，每亩年增收四千多元。第一年两成茶叶发霉，合建恒温车间后得以解决。"),
      ("先抓变化：从扔掉到变成收入。再写困难和办法。两句话正好，一句写成果，一句写曲折。", "云岭村把夏秋茶叶加工成发酵茶，使每亩茶园每年多收四千余元，参与农户已达半数。起初因温湿度失控损失两成茶叶，后靠共建恒温车间克服。")),
     (("这段话讲的是茶叶，写一句就够了。", "云岭村的茶很好喝。"),
      ("重点是周岚和她的收入，四千多元是她一年赚的钱。", "周岚在网上卖茶，一年收入四千多元，但是两成茶叶发霉，所以她不做了。"))),
    ("地球上面积最大的海洋是哪一个？",
     "太平洋",
     (("四大洋按面积排列：太平洋、大西洋、印度洋、北冰洋。太平洋的面积约占地球表面的三分之一，比所有陆地加起来还大。", "太平洋"),
      ("太平洋位于亚洲、大洋洲和美洲之间，面积大约一亿六千多万平方公里；大西洋只有它的一半左右。题目问最大的，所以是太平洋。", "太平洋")),
     (("大西洋连接欧洲、非洲和美洲，航线最繁忙，从名字看“大”西洋应该最大。", "大西洋"),
      ("北冰洋周围都是冰，看地图时它横跨整个上方，显得非常宽。", "北冰洋"))),
    ("请帮我给物业写一条简短的通知回复：我家周六上午有人在家，可以来检修水管，但请在十点以后。",
     None,
     (("内容有三点：周六上午家里有人、可以检修、十点以后来。语气礼貌，短信长度即可，不要编造房号。", "您好，通知已收到。周六上午家里有人，可以上门检修水管，麻烦安排在十点以后。谢谢！"),
      ("对方最需要知道的是时间，所以把“周六十点以后”放在前面，最后道谢。房号用户没有给，留一个空位。", "物业您好：本周六上午十点以后可以来[房号]检修水管，届时家中有人。辛苦各位师傅，谢谢。")),
     (("写得正式一些，越长越显得尊重。", "尊敬的物业管理处全体领导和同志们：首先请允许我向长期以来奋战在服务一线的你们致以最崇高的敬意！关于水管检修一事，本人高度重视，反复思考，认为这是一项利国利民的大事……"),
      ("周六上午十点以后没有人在家，所以拒绝。", "您好，周六上午不方便，请改天再来。"))),
)


def tasks(rng):
    """Two problems with numbers, and the texts."""
    made = [shopping(rng), shopping(rng)]
    for prompt, reference, good, poor in TEXTS:
        right = [Attempt(thought, answer) for thought, answer in good]
        right += [Attempt(good[0][0] + good[1][0], good[0][1])]
        wrong = [Attempt(thought, answer) for thought, answer in poor]
        source = "qa" if reference and len(reference) < 10 else "writing"
        made.append(Task("chinese", source, prompt, reference, right, wrong, extra={"language": "zh"}))
    return made
